# SPDX-License-Identifier: MIT
#
# Cross build for WebAssembly with Debian's emscripten: 32 bits, vectors of 128 bits, no threads.
# Its programs run under node. emscripten 3.1.6 looks for its own modules of node in node's folders
# only, and its programs take node's fetch() for that of a browser; both are told otherwise here.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER emcc)
set(CMAKE_AR emar CACHE FILEPATH "")
set(CMAKE_RANLIB emranlib CACHE FILEPATH "")
set(CMAKE_EXECUTABLE_SUFFIX .js)
set(CMAKE_C_FLAGS_INIT "-msimd128")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CROSSCOMPILING_EMULATOR node;--no-experimental-fetch)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_ROOT_PATH ${CMAKE_BINARY_DIR}/libraries)
# -pthread would ask for shared memory; the functions of pthreads are there without it.
set(THREADS_HAVE_PTHREAD_ARG FALSE CACHE INTERNAL "")
set(CMAKE_HAVE_LIBC_PTHREAD TRUE CACHE INTERNAL "")
