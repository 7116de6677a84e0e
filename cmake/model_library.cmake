# SPDX-License-Identifier: MIT
#
# libmha_model, shared and static: the rooms model and text, and what they use of format and base, on
# top of libmha. Everything that is not exported is local to it, in the static library too: its
# members are joined into one object first.
#
# Learning a vocabulary belongs to the program alone: no function of the header leads to it, and it
# writes with stdio, which the library does not.
set(learning_objects "/(bpe_learn|bpe_merges|buffer_stream|buffer_stream_apple|tokenizer_json_write|word_counts)[.]c")
set(model_objects $<TARGET_OBJECTS:mha_model>
    $<FILTER:$<TARGET_OBJECTS:mha_text>,EXCLUDE,${learning_objects}>)

# What both need: the header, libmha, and the libraries of the room text by their plain names, so
# that the installed package can be moved.
function(finish_model_library name core)
    set_target_properties(${name} PROPERTIES OUTPUT_NAME mha_model LINKER_LANGUAGE C
                          ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                          LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
                          RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    target_include_directories(${name} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${name} PUBLIC ${core} PRIVATE $<BUILD_INTERFACE:mha_flags>
                          ${MHA_TEXT_LIBRARIES} m)
endfunction()

add_library(mha_model_shared SHARED ${model_objects})
finish_model_library(mha_model_shared mha)
target_link_libraries(mha_model_shared PRIVATE mha_format mha_base ${MHA_TEXT_ARCHIVES})
# A program that calls libmha_model alone does not name libmha, so libmha_model finds it beside itself.
set_target_properties(mha_model_shared PROPERTIES EXPORT_NAME mha_model VERSION ${PROJECT_VERSION}
                      SOVERSION ${MHA_INTERFACE_VERSION} INSTALL_RPATH $ORIGIN)
limit_exports(mha_model_shared ${PROJECT_SOURCE_DIR}/cmake/libmha_model.map
              ${PROJECT_SOURCE_DIR}/include/mha/mha_model.h)

set(model_object ${PROJECT_BINARY_DIR}/libmha_model.o)
set(localize --localize-hidden)
if(WIN32) # objects have no hidden symbols there
    set(localize --wildcard --keep-global-symbol=mha_*)
endif()
add_custom_command(OUTPUT ${model_object}
    COMMAND ${CMAKE_LINKER} -r -o ${model_object} ${model_objects} $<TARGET_FILE:mha_format>
            $<TARGET_FILE:mha_base> ${MHA_TEXT_ARCHIVES}
    COMMAND ${CMAKE_OBJCOPY} ${localize} ${model_object}
    DEPENDS ${model_objects} mha_model mha_text mha_format mha_base ${MHA_TEXT_ARCHIVES}
    COMMAND_EXPAND_LISTS VERBATIM)
add_library(mha_model_static STATIC ${model_object})
finish_model_library(mha_model_static mha_static)

add_library(mha::mha_model ALIAS mha_model_shared)
add_library(mha::mha_model_static ALIAS mha_model_static)
