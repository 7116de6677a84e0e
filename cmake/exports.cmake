# SPDX-License-Identifier: MIT
#
# limit_exports(TARGET MAP HEADER): a shared library exports the functions of its public header and
# nothing else. Linux has a version script for that, Windows a list of names, made from the header.
function(limit_exports target map header)
    if(WIN32)
        file(READ ${header} text)
        string(REGEX MATCHALL "\nMHA_API [^;(]*[ *]mha_[a-z0-9_]+[(]" declarations "${text}")
        list(TRANSFORM declarations REPLACE ".*[ *](mha_[a-z0-9_]+)[(]" "\\1")
        list(JOIN declarations "\n" names)
        file(WRITE ${PROJECT_BINARY_DIR}/${target}.def "EXPORTS\n${names}\n")
        target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/${target}.def)
    elseif(APPLE)
        target_link_options(${target} PRIVATE "-Wl,-exported_symbol,_mha_*")
    else()
        set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
        target_link_options(${target} PRIVATE -Wl,--version-script=${map})
    endif()
    if(NOT MHA_SANITIZE AND NOT APPLE)
        target_link_options(${target} PRIVATE -Wl,--no-undefined)
    endif()
endfunction()
