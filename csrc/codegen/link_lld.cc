/* link_lld.cc - see link_lld.h. The only C++ file: lld has no C interface.
 *
 * lld knows file names only, so the input is a memfd and the output a pipe, both named through /proc/self/fd;
 * a thread drains the pipe (a memfd as output fails: lld renames a temporary file over it). lld keeps
 * process-global state of its own, hence the mutex. No exceptions are thrown or caught: every allocation here
 * is malloc.
 */
#include "codegen/link_lld.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace
{

pthread_mutex_t lld_mutex = PTHREAD_MUTEX_INITIALIZER;

/* A stream that keeps the first bytes written to it in the caller's buffer. */
class ErrorStream : public llvm::raw_ostream
{
    char *buf;
    size_t cap;
    uint64_t pos = 0;

    void write_impl(const char *p, size_t n) override
    {
        if (pos + 1 < cap) {
            size_t room = cap - 1 - (size_t)pos, k = n < room ? n : room;
            memcpy(buf + pos, p, k);
            buf[pos + k] = 0;
        }
        pos += n;
    }
    uint64_t current_pos() const override
    {
        return pos;
    }

  public:
    ErrorStream(char *b, size_t n) : llvm::raw_ostream(/*unbuffered=*/true), buf(b), cap(n)
    {
        if (n)
            b[0] = 0;
    }
    bool wrote() const
    {
        return pos != 0;
    }
};

struct Drain {
    int fd;
    char *data;
    size_t len, cap;
    int error;
};

/* Reads until all writers are closed. When memory runs out it goes on reading, so that lld does not block. */
void *
drain_main(void *arg)
{
    Drain *d = static_cast<Drain *>(arg);
    char scrap[4096];
    for (;;) {
        if (!d->error && d->len == d->cap) {
            size_t cap = d->cap ? d->cap * 2 : (size_t)1 << 16;
            char *p = static_cast<char *>(realloc(d->data, cap));
            if (p) {
                d->data = p;
                d->cap = cap;
            } else {
                d->error = ENOMEM;
            }
        }
        bool keep = !d->error;
        ssize_t k = keep ? read(d->fd, d->data + d->len, d->cap - d->len) : read(d->fd, scrap, sizeof scrap);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            d->error = errno;
        if (k <= 0)
            return nullptr;
        if (keep)
            d->len += (size_t)k;
    }
}

bool
write_all(int fd, const void *p, size_t n)
{
    const char *c = static_cast<const char *>(p);
    while (n) {
        ssize_t k = write(fd, c, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        c += k;
        n -= (size_t)k;
    }
    return true;
}

void
say_errno(char *err, size_t n, const char *what)
{
    int e = errno;
    snprintf(err, n, "%s: errno %d", what, e);
}

bool
run_lld(int in_fd, int out_fd, char *err, size_t err_n)
{
    char in_name[40], out_name[40];
    snprintf(in_name, sizeof in_name, "/proc/self/fd/%d", in_fd);
    snprintf(out_name, sizeof out_name, "/proc/self/fd/%d", out_fd);
    const char *args[] = {"ld.lld", "-shared", "--no-undefined", "--threads=1", "--build-id=none",
                          in_name,  "-o",      out_name};
    const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
    ErrorStream es(err, err_n);
    pthread_mutex_lock(&lld_mutex);
    lld::Result r = lld::lldMain(args, es, es, drivers);
    pthread_mutex_unlock(&lld_mutex);
    if (r.retCode == 0)
        return true;
    if (!es.wrote())
        snprintf(err, err_n, "exit code %d", r.retCode);
    return false;
}

} // namespace

extern "C" bool
tl_lld_link(const void *obj, size_t obj_n, void **out, size_t *out_n, char *err, size_t err_n)
{
    int in_fd = -1, pipe_fd[2] = {-1, -1};
    bool ok = false, started = false;
    pthread_t thread;
    Drain drain = {};

    in_fd = memfd_create("tilelang-object", MFD_CLOEXEC);
    if (in_fd < 0 || !write_all(in_fd, obj, obj_n)) {
        say_errno(err, err_n, "memfd for the object");
    } else if (pipe2(pipe_fd, O_CLOEXEC) != 0) {
        say_errno(err, err_n, "pipe for the code object");
    } else {
        drain.fd = pipe_fd[0];
        int e = pthread_create(&thread, nullptr, drain_main, &drain);
        started = e == 0;
        if (!started) {
            errno = e;
            say_errno(err, err_n, "thread for the code object");
        }
    }
    if (started) {
        ok = run_lld(in_fd, pipe_fd[1], err, err_n);
        close(pipe_fd[1]); /* ends the thread */
        pipe_fd[1] = -1;
        pthread_join(thread, nullptr);
        if (ok && drain.error) {
            errno = drain.error;
            say_errno(err, err_n, "reading the code object");
            ok = false;
        }
        if (ok && drain.len == 0) {
            snprintf(err, err_n, "lld wrote nothing");
            ok = false;
        }
    }
    for (int fd : {in_fd, pipe_fd[0], pipe_fd[1]})
        if (fd >= 0)
            close(fd);
    if (!ok) {
        free(drain.data);
        return false;
    }
    *out = drain.data;
    *out_n = drain.len;
    return true;
}
