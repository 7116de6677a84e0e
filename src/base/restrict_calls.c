/* SPDX-License-Identifier: MIT */
/*
 * The filter is a program for the kernel (seccomp), made of one comparison per forbidden call. It
 * lists what is forbidden, not what is allowed: a C library may need calls that this file does not
 * know.
 */
#include "base/restrict_calls.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && \
    __has_include(<linux/seccomp.h>)

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define THIS_MACHINE AUDIT_ARCH_X86_64
#else
#define THIS_MACHINE AUDIT_ARCH_AARCH64
#endif

enum {
    WRITING = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC,
    FILTER_MAX = 160,
    FOREIGN_CALLS = 0x40000000 /* x86-64: calls with 32-bit pointers begin here */
};

/* clang-format off */
static const int forbidden[] = {
    /* programs, and other processes */
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
    /* sockets */
    SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen,
    /* files */
    SYS_unlinkat, SYS_mkdirat, SYS_renameat2, SYS_linkat, SYS_symlinkat, SYS_mknodat, SYS_fchmodat,
    SYS_fchmod, SYS_fchownat, SYS_fchown, SYS_truncate, SYS_ftruncate,
    /* the system */
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setuid, SYS_setgid, SYS_setns, SYS_unshare,
    SYS_bpf, SYS_keyctl, SYS_add_key, SYS_request_key,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup, /* its requests would not pass this filter */
#endif
#ifdef __x86_64__
    SYS_fork, SYS_vfork, SYS_creat, SYS_unlink, SYS_rmdir, SYS_rename, SYS_mkdir, SYS_link, SYS_symlink,
    SYS_mknod, SYS_chmod, SYS_chown, SYS_lchown,
#endif
};
/* clang-format on */
_Static_assert(2 * sizeof forbidden / sizeof forbidden[0] + 40 <= FILTER_MAX,
               "room for the filter");

typedef struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short length;
} filter;

static void add(filter *f, uint16_t code, uint8_t if_true, uint8_t if_false, uint32_t k)
{
    f->code[f->length++] = (struct sock_filter){code, if_true, if_false, k};
}

static void load(filter *f, size_t offset)
{
    add(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void give(filter *f, uint32_t result)
{
    add(f, BPF_RET | BPF_K, 0, 0, result);
}

static void load_number(filter *f)
{
    load(f, offsetof(struct seccomp_data, nr));
}

static void forbid(filter *f, int number)
{
    add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)number);
    give(f, SECCOMP_RET_ERRNO | EPERM);
}

/* As on a kernel that does not have the call: a C library then uses an older one, whose arguments
 * can be seen here. */
static void deny_knowledge(filter *f, int number)
{
    add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)number);
    give(f, SECCOMP_RET_ERRNO | ENOSYS);
}

/* The call fails if one of `bits` is set in its argument, or, if not `set`, unless one is. Both
 * machines are little-endian: the lower half of an argument is the first. */
static void forbid_bits(filter *f, int number, int argument, uint32_t bits, bool set)
{
    const uint8_t skip = 1; /* over the instruction that ends the call */
    add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (uint32_t)number);
    load(f, offsetof(struct seccomp_data, args) + 8 * (size_t)argument);
    add(f, BPF_JMP | BPF_JSET | BPF_K, set ? 0 : skip, set ? skip : 0, bits);
    give(f, SECCOMP_RET_ERRNO | EPERM);
    load_number(f);
}

static void write_filter(filter *f)
{
    load(f, offsetof(struct seccomp_data, arch));
    add(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, THIS_MACHINE);
    give(f, SECCOMP_RET_ERRNO | EPERM);
    load_number(f);
    add(f, BPF_JMP | BPF_JGE | BPF_K, 0, 1, FOREIGN_CALLS);
    give(f, SECCOMP_RET_ERRNO | EPERM);
    for (size_t n = 0; n < sizeof forbidden / sizeof forbidden[0]; n++)
        forbid(f, forbidden[n]);
    forbid_bits(f, SYS_openat, 2, WRITING, true);
#ifdef SYS_open
    forbid_bits(f, SYS_open, 1, WRITING, true);
#endif
    forbid_bits(f, SYS_clone, 0, CLONE_THREAD, false);
#ifdef SYS_openat2
    deny_knowledge(f, SYS_openat2);
#endif
#ifdef SYS_clone3
    deny_knowledge(f, SYS_clone3);
#endif
    give(f, SECCOMP_RET_ALLOW);
}

bool restrict_calls(void)
{
    filter f = {.length = 0};
    write_filter(&f);
    const struct sock_fprog program = {f.length, f.code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

#else

bool restrict_calls(void)
{
    return false;
}

#endif
