# SPDX-License-Identifier: MIT
#
# cmake -DSOURCE=src/page/web -DHOST=js/host.mjs -DOUTPUT=page_template.c -P page_template.cmake
#
# Puts the page of "mha view" together: page.html with its two style sheets and, as one script, the modules that
# it names in "<!-- modules: a.js b.js -->", in this order. A module imports and exports names; in
# one script all see them, so these go: an import ends with its semicolon, "export " begins a line.
# The script of a Worker, worker.js, is joined with js/host.mjs in the same way.
# The result is C: five strings, the page before its data and after it, the Worker's script, and our
# own two lectures.
cmake_minimum_required(VERSION 3.22)

file(READ ${SOURCE}/page.html page)
set(style "")
foreach(sheet page.css views.css)
    file(READ ${SOURCE}/${sheet} text)
    string(APPEND style "${text}")
endforeach()

string(REGEX MATCH "<!-- modules: ([a-z_. ]*) -->" marker "${page}")
string(REPLACE " " ";" modules "${CMAKE_MATCH_1}")

# joined(RESULT FILE...): modules as one script.
function(joined result)
    set(script "")
    foreach(file IN LISTS ARGN)
        file(READ ${file} text)
        string(REGEX REPLACE "\nimport [^;]*;" "" text "${text}")
        string(REGEX REPLACE "\nexport " "\n" text "${text}")
        string(APPEND script "${text}")
    endforeach()
    set(${result} "${script}" PARENT_SCOPE)
endfunction()

list(TRANSFORM modules PREPEND ${SOURCE}/)
joined(script ${modules})
joined(worker ${HOST} ${SOURCE}/worker.js)

string(REPLACE "${marker}" "<script type=\"module\">\n${script}</script>" page "${page}")
string(REPLACE "<!-- style -->" "<style>\n${style}</style>" page "${page}")

# quoted(RESULT TEXT): an array of bytes. Strings of C may be too short for a page.
function(quoted result text)
    string(HEX "${text}" digits)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${digits}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
           bytes "${bytes}")
    set(${result} "${bytes}" PARENT_SCOPE)
endfunction()

string(FIND "${page}" "<!-- data -->" at)
string(SUBSTRING "${page}" 0 ${at} head)
math(EXPR at "${at} + 13")
string(SUBSTRING "${page}" ${at} -1 tail)
quoted(head "${head}")
quoted(tail "${tail}")
file(READ ${SOURCE}/../lecture.txt lecture)
quoted(lecture "${lecture}")
file(READ ${SOURCE}/../lecture_pictures.txt lecture_pictures)
quoted(lecture_pictures "${lecture_pictures}")
quoted(worker "${worker}")
file(WRITE ${OUTPUT} "/* Made from src/page/web/ by cmake/page_template.cmake. */
#include \"page/page_template.h\"

const unsigned char page_template_head[] = {
${head}0};
const unsigned char page_template_tail[] = {
${tail}0};
const unsigned char page_lecture_text[] = {
${lecture}0};
const unsigned char page_lecture_pictures_text[] = {
${lecture_pictures}0};
const unsigned char page_template_worker[] = {
${worker}0};
")
