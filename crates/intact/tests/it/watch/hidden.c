/* Opens one connection by connect, and others by other system calls: hidden HOW PORT COUNT. Prints
   how many it opened, and falls back to connect where a call is refused, as the callers of TCP Fast
   Open do. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sockaddr_in to;
static char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/* A ring that a program inherits, which connects. */
static int through_ring(int ring, int socket)
{
    static char *shared;
    static struct io_uring_sqe *entries;
    static unsigned offsets[5];
    if (!shared) {
        const char *told = getenv("RING_OFFSETS");
        sscanf(told, "%u %u %u %u %u", offsets, offsets + 1, offsets + 2, offsets + 3, offsets + 4);
        shared = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
        entries = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    }
    unsigned *tail = (unsigned *)(shared + offsets[0]);
    unsigned at = *tail & *(unsigned *)(shared + offsets[1]);
    memset(&entries[at], 0, sizeof *entries);
    entries[at].opcode = IORING_OP_CONNECT;
    entries[at].fd = socket;
    entries[at].addr = (unsigned long)&to;
    entries[at].off = sizeof to;
    ((unsigned *)(shared + offsets[2]))[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1)
        return -1;
    __atomic_add_fetch((unsigned *)(shared + offsets[3]), 1, __ATOMIC_RELEASE);
    return 0;
}

static int open_by(const char *how, int socket)
{
    struct iovec part = {request, sizeof request - 1};
    struct mmsghdr message = {{&to, sizeof to, &part, 1, 0, 0, 0}, 0};
    if (!strncmp(how, "ring", 4))
        return through_ring(atoi(how + 4), socket);
    if (!strcmp(how, "sendto"))
        return sendto(socket, request, sizeof request - 1, MSG_FASTOPEN, (void *)&to, sizeof to);
    if (!strcmp(how, "sendmsg"))
        return sendmsg(socket, &message.msg_hdr, MSG_FASTOPEN);
    if (!strcmp(how, "sendmmsg"))
        return sendmmsg(socket, &message, 1, MSG_FASTOPEN);
#ifdef __x86_64__
    /* the calls of 32-bit programs, whose structures lie below 4 GiB */
    unsigned *words = mmap(0, 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    unsigned base = (unsigned)(unsigned long)words;
    int result, call = 345, first = socket;
    unsigned second = base, third = 1, fourth = MSG_FASTOPEN;
    memcpy(words + 32, &to, sizeof to);
    memcpy(words + 64, request, sizeof request);
    /* msghdr: name, its length, parts, their number */
    words[0] = base + 128, words[1] = sizeof to, words[2] = base + 64, words[3] = 1;
    words[16] = base + 256, words[17] = sizeof request - 1;
    if (!strcmp(how, "socketcall")) {
        /* sendmsg(socket, message, flags) */
        words[40] = socket, words[41] = base, words[42] = MSG_FASTOPEN;
        call = 102, first = 16, second = base + 160;
    }
    __asm__ volatile("int $0x80" : "=a"(result)
                     : "a"(call), "b"(first), "c"(second), "d"(third), "S"(fourth) : "memory");
    return result < 0 ? -1 : result;
#else
    return -1;
#endif
}

int main(int count, char **words)
{
    if (!strcmp(words[1], "ring-for")) {
        struct io_uring_params made = {0};
        int ring = syscall(SYS_io_uring_setup, 8, &made);
        if (ring < 0)
            return 3;
        char text[80];
        fcntl(ring, F_SETFD, 0);
        sprintf(text, "%u %u %u %u %u", made.sq_off.tail, made.sq_off.ring_mask, made.sq_off.array,
                made.cq_off.head, made.cq_off.tail);
        setenv("RING_OFFSETS", text, 1);
        sprintf(text, "ring%d", ring);
        words[count - 3] = text;
        return execv(words[2], words + 2);
    }
    int opened = 0;
    to.sin_family = AF_INET;
    to.sin_port = htons(atoi(words[2]));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int turn = 0; turn <= atoi(words[3]); turn++) {
        char answer[400];
        int one = socket(AF_INET, SOCK_STREAM, 0);
        int sent = turn ? open_by(words[1], one) : -1;
        if (sent < 0 && connect(one, (void *)&to, sizeof to))
            return 4;
        if (sent <= 0)
            write(one, request, sizeof request - 1);
        opened += read(one, answer, sizeof answer) > 0;
        close(one);
    }
    printf("%d\n", opened);
    return 0;
}
