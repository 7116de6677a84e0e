# SPDX-License-Identifier: MIT
#
# What makes a mistake in memory harder to exploit, added to mha_flags: canaries on stacks, checked
# calls of the C library, a table of imported functions that is read-only once the program runs, and,
# where the processor can, jumps that only lead to places meant for them. docs/testing.md has what it
# costs. Sanitizers check the same more thoroughly and do not go with it.
include(CheckCCompilerFlag)
include(CheckPIESupported)

# harden(FLAG...): compile with those of these flags that the compiler has.
function(harden)
    foreach(flag IN LISTS ARGN)
        string(MAKE_C_IDENTIFIER "MHA_HAS${flag}" known)
        check_c_compiler_flag(${flag} ${known})
        if(${known})
            target_compile_options(mha_flags INTERFACE ${flag})
        endif()
    endforeach()
endfunction()

harden(-fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    harden(-fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    harden(-mbranch-protection=standard)
endif()
# Checked calls need a compiler that optimises. A distribution may have set another level already.
if(NOT CMAKE_C_FLAGS MATCHES "FORTIFY_SOURCE")
    target_compile_options(mha_flags INTERFACE
        "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>")
endif()
target_link_options(mha_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
check_pie_supported(LANGUAGES C)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
