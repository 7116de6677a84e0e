# SPDX-License-Identifier: MIT
#
# add_room(NAME USES ROOM... SOURCES FILE...): the static library mha_NAME from the files of the room
# src/NAME. It can use the public header and the rooms after USES, "core" being the library itself.
# tests/checks/check_rooms.sh reads these lists and fails where a file includes or links more.
function(add_room name)
    cmake_parse_arguments(PARSE_ARGV 1 room "" "" "USES;SOURCES")
    add_library(mha_${name} STATIC ${room_SOURCES})
    # Some rooms become a part of a shared library.
    set_target_properties(mha_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
                          C_VISIBILITY_PRESET hidden)
    target_include_directories(mha_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src
                               ${PROJECT_SOURCE_DIR}/include)
    list(TRANSFORM room_USES PREPEND mha_)
    list(TRANSFORM room_USES REPLACE "^mha_core$" mha_static)
    target_link_libraries(mha_${name} PRIVATE mha_flags PUBLIC ${room_USES} m)
endfunction()
