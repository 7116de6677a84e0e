# SPDX-License-Identifier: MIT
#
# cmake -DSOURCE=src/page/web -DHOST=js/host.mjs -DOUTPUT=page_template.c -P page_template.cmake
#
# Puts the page of "mha view" together: page.html with its two style sheets and, as one script, the modules that
# it names in "<!-- modules: a.js b.js -->", in this order. A module imports and exports names; in
# one script all see them, so these go: an import ends with its semicolon, "export " begins a line.
# The script of a Worker, worker.js, is joined with js/host.mjs in the same way.
# The policy of the page allows this script and no other, by its hash: "<!-- hash -->" in page.html.
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

# base64_of(RESULT DIGITS): bytes in hexadecimal digits, six of which are four letters of base64.
function(base64_of result digits)
    set(letters ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
    set(text "")
    string(LENGTH "${digits}" count)
    math(EXPR last "${count} - 1")
    foreach(at RANGE 0 ${last} 6)
        string(SUBSTRING "${digits}" ${at} 6 group)
        string(LENGTH "${group}" size)
        string(SUBSTRING "${group}0000" 0 6 group)
        foreach(shift 18 12 6 0)
            math(EXPR letter "(0x${group} >> ${shift}) & 63")
            string(SUBSTRING ${letters} ${letter} 1 letter)
            # Two digits, one byte, are two letters; two bytes are three.
            math(EXPR bits "24 - ${shift} - 4 * ${size}")
            if(bits GREATER_EQUAL 6)
                set(letter "=")
            endif()
            string(APPEND text ${letter})
        endforeach()
    endforeach()
    set(${result} "${text}" PARENT_SCOPE)
endfunction()

string(SHA256 digest "\n${script}")
base64_of(hash ${digest})
string(REPLACE "<!-- hash -->" "'sha256-${hash}'" page "${page}")
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
