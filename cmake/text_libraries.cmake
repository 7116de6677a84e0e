# SPDX-License-Identifier: MIT
#
# PCRE2 and utf8proc for WebAssembly and Windows: Debian has no builds of them, so their sources are taken
# from Debian's archive and compiled along. Without a network the tokenizers are left out, as
# src/text/CMakeLists.txt says.

# get_sources(NAME VERSION HASH): sets NAME_folder to the unpacked sources, empty if that failed.
function(get_sources name version hash)
    set(folder ${PROJECT_BINARY_DIR}/${name}-${version})
    set(archive ${folder}.tar.gz)
    string(SUBSTRING ${name} 0 1 letter)
    foreach(server IN ITEMS deb.debian.org archive.debian.org)
        if(NOT EXISTS ${folder}/LICENCE AND NOT EXISTS ${folder}/LICENSE.md)
            file(DOWNLOAD http://${server}/debian/pool/main/${letter}/${name}/${name}_${version}.orig.tar.gz
                 ${archive} TIMEOUT 60 STATUS status)
            file(SHA256 ${archive} found)
            if(found STREQUAL hash)
                file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${PROJECT_BINARY_DIR})
            endif()
        endif()
    endforeach()
    if(EXISTS ${folder}/LICENCE OR EXISTS ${folder}/LICENSE.md)
        set(${name}_folder ${folder} PARENT_SCOPE)
    else()
        message(STATUS "No sources of ${name}: ${status}")
        set(${name}_folder "" PARENT_SCOPE)
    endif()
endfunction()

get_sources(pcre2 10.42 c33b418e3b936ee3153de2c61cc638e7e4fe3156022a5c77d0711bcbb9d64f1f)
get_sources(utf8proc 2.8.0 a0a60a79fe6f6d54e7d411facbfcc867a6e198608f2cd992490e46f04b1bcecc)
if(NOT pcre2_folder OR NOT utf8proc_folder)
    return()
endif()

set(pcre2_made ${PROJECT_BINARY_DIR}/pcre2)
configure_file(${pcre2_folder}/src/config.h.generic ${pcre2_made}/config.h COPYONLY)
configure_file(${pcre2_folder}/src/pcre2.h.generic ${pcre2_made}/pcre2.h COPYONLY)
configure_file(${pcre2_folder}/src/pcre2_chartables.c.dist ${pcre2_made}/pcre2_chartables.c COPYONLY)
set(pcre2_sources ${pcre2_made}/pcre2_chartables.c)
foreach(part IN ITEMS auto_possess compile config context error extuni find_bracket jit_compile
        maketables match match_data newline ord2utf pattern_info script_run string_utils study
        substring tables ucd valid_utf xclass)
    list(APPEND pcre2_sources ${pcre2_folder}/src/pcre2_${part}.c)
endforeach()
add_library(built_pcre2 STATIC ${pcre2_sources})
target_compile_definitions(built_pcre2 PRIVATE HAVE_CONFIG_H PCRE2_CODE_UNIT_WIDTH=8 PCRE2_STATIC
                           SUPPORT_PCRE2_8 SUPPORT_UNICODE)
target_include_directories(built_pcre2 PRIVATE ${pcre2_made} ${pcre2_folder}/src)
add_library(built_utf8proc STATIC ${utf8proc_folder}/utf8proc.c)
target_compile_definitions(built_utf8proc PRIVATE UTF8PROC_STATIC)

# What src/text/CMakeLists.txt looks for.
set(PCRE2_INCLUDE ${pcre2_made})
set(PCRE2_LIBRARY built_pcre2)
set(UTF8PROC_INCLUDE ${utf8proc_folder})
set(UTF8PROC_LIBRARY built_utf8proc)
set(MHA_TEXT_DEFINITIONS PCRE2_STATIC UTF8PROC_STATIC)
