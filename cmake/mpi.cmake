# SPDX-License-Identifier: MIT
#
# Which MPI libraries are here. There may be several, each with a compiler wrapper of its own; Debian
# calls them mpicc.openmpi and mpicc.mpich. Elsewhere the plain mpicc is taken. For each NAME in
# MHA_MPI_NAMES there is a target mha_mpi_use_NAME with what its wrapper adds to a command line, and
# MHA_MPIRUN_NAME, which starts its programs.
set(MHA_MPI_NAMES "")

function(find_mpi name wrapper runner)
    find_program(MHA_MPICC_${name} ${wrapper})
    find_program(MHA_MPIRUN_${name} ${runner})
    if(NOT MHA_MPICC_${name})
        return()
    endif()
    execute_process(COMMAND ${MHA_MPICC_${name}} -show OUTPUT_VARIABLE line RESULT_VARIABLE status
                    ERROR_QUIET)
    if(NOT status EQUAL 0)
        return()
    endif()
    separate_arguments(words UNIX_COMMAND "${line}")
    add_library(mha_mpi_use_${name} INTERFACE)
    foreach(word IN LISTS words)
        if(word MATCHES "^-I(.+)")
            target_include_directories(mha_mpi_use_${name} SYSTEM INTERFACE ${CMAKE_MATCH_1})
        elseif(word MATCHES "^-L(.+)")
            target_link_directories(mha_mpi_use_${name} INTERFACE ${CMAKE_MATCH_1})
        elseif(word MATCHES "^-l")
            target_link_libraries(mha_mpi_use_${name} INTERFACE ${word})
        endif()
    endforeach()
    set(MHA_MPI_NAMES ${MHA_MPI_NAMES} ${name} PARENT_SCOPE)
endfunction()

if(NOT CMAKE_CROSSCOMPILING)
    find_mpi(openmpi mpicc.openmpi mpirun.openmpi)
    find_mpi(mpich mpicc.mpich mpirun.mpich)
    if(NOT MHA_MPI_NAMES)
        find_mpi(mpi mpicc mpirun)
    endif()
endif()
