# SPDX-License-Identifier: MIT
#
# The build for WebAssembly: two modules for js/, one for pages, and the program and some tests for
# node.
#
#      libmha.wasm         the room core: attention and layers
#      libmha_model.wasm   libmha_model on top of it: models and tokenizers
#      mha_page.wasm       the room page: what "mha serve" answers, for pages of "mha view --live"
#
# A module exports all functions of its headers and those of js/src/. What it imports, a few system
# calls, is in js/host.mjs; the script that emcc writes along is not used.
include(cmake/text_libraries.cmake)

foreach(room IN ITEMS format text model corpus translator heads page)
    add_subdirectory(src/${room})
endforeach()

# exported(RESULT HEADER...): the names of functions that these headers declare, for emcc.
function(exported result)
    set(names _malloc _free _mha_status_string _mha_isa_name _mha_version_string)
    foreach(header IN LISTS ARGN)
        file(READ ${header} text)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
        string(REGEX MATCHALL "(MHA_API|MHAJS_API) [^;(]*[ *](mha[a-z0-9_]+)\\(" declared "${text}")
        foreach(line IN LISTS declared)
            string(REGEX REPLACE ".*[ *](mha[a-z0-9_]+)\\($" "_\\1" name "${line}")
            list(APPEND names ${name})
        endforeach()
    endforeach()
    list(REMOVE_DUPLICATES names)
    list(JOIN names "," names)
    set(${result} ${names} PARENT_SCOPE)
endfunction()

# Linked without optimisation of the script, which would give the imports other names.
function(add_module name)
    cmake_parse_arguments(PARSE_ARGV 1 module "" "" "HEADERS;SOURCES;LIBRARIES")
    exported(names ${module_HEADERS})
    add_executable(${name}_module ${module_SOURCES})
    set_target_properties(${name}_module PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    target_link_libraries(${name}_module PRIVATE mha_flags ${module_LIBRARIES})
    target_link_options(${name}_module PRIVATE -O1 --no-entry -sEXPORTED_FUNCTIONS=${names}
                        -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sWASM_BIGINT=1
                        -sFORCE_FILESYSTEM=1)
endfunction()

set(js ${PROJECT_SOURCE_DIR}/js/src)
add_module(libmha
    HEADERS ${PROJECT_SOURCE_DIR}/include/mha/mha.h ${js}/mhajs.h
    SOURCES ${js}/mhajs_attention.c ${js}/mhajs_layer.c
    LIBRARIES mha_static)
add_module(libmha_model
    HEADERS ${PROJECT_SOURCE_DIR}/include/mha/mha_model.h ${js}/mhajs_model.h
    SOURCES ${js}/mhajs_model.c ${js}/mhajs_tokenizer.c
    LIBRARIES mha_model)
add_module(mha_page
    HEADERS ${js}/mhajs_page.h
    SOURCES ${js}/mhajs_page.c
    LIBRARIES mha_page mha_heads mha_translator mha_model)

# The package for npm: "npm pack build/wasm/package" makes its archive.
set(package ${PROJECT_BINARY_DIR}/package)
configure_file(${PROJECT_SOURCE_DIR}/js/package.json ${package}/package.json @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/LICENSE ${package}/LICENSE COPYONLY)
file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/js/*.mjs)
set(package_files ${scripts} ${PROJECT_SOURCE_DIR}/js/index.d.ts ${PROJECT_SOURCE_DIR}/js/README.md
    ${PROJECT_SOURCE_DIR}/js/example.html)
add_custom_target(wasm_package ALL
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${package_files}
            ${PROJECT_BINARY_DIR}/libmha.wasm ${PROJECT_BINARY_DIR}/libmha_model.wasm ${package}
    DEPENDS libmha_module libmha_model_module ${package_files} VERBATIM)

if(NOT MHA_BUILD_PROGRAM)
    return()
endif()

# Programs for node: they see its files and its environment.
add_link_options(-O1 -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sNODERAWFS=1 -sEXIT_RUNTIME=1
                 --pre-js ${PROJECT_SOURCE_DIR}/cmake/wasm_environment.js)
foreach(room IN ITEMS scenes picture vision problem draw bench claims program)
    add_subdirectory(src/${room})
endforeach()
if(MHA_BUILD_TESTS)
    enable_testing()
    add_subdirectory(tests)
endif()
