/* A client that speaks to the kernel as 32-bit programs do: two requests to 127.0.0.1:PORT, each on a connection of its own, one by
   socketcall and one by connect. As a 64-bit program too: int 0x80 is open to any. Without a C library, since that would have to be a 32-bit one. */

#define EXIT 1
#define READ 3
#define WRITE 4
#define CLOSE 6
#define SOCKETCALL 102
#define SOCKET 359
#define CONNECT 362

static long call(long number, long first, long second, long third) {
    long given;
    __asm__ volatile("int $0x80"
                     : "=a"(given)
                     : "a"(number), "b"(first), "c"(second), "d"(third)
                     : "memory"
#ifdef __x86_64__
                       , "r8", "r9", "r10", "r11"
#endif
    );
    return given;
}

/* static: pointers must fit into 32 bits */
static unsigned char address[16] = {2, 0, PORT >> 8, PORT & 255, 127, 0, 0, 1};
static int words[3];
static char request[] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
static char answer[4096];

#define AT(place) ((long)(place))

static void ask(int socket, int connected) {
    long count, total = 0;
    if (connected < 0) call(EXIT, 1, 0, 0);
    call(WRITE, socket, AT(request), sizeof request - 1);
    while (total < (long)sizeof answer
           && (count = call(READ, socket, AT(answer) + total, sizeof answer - total)) > 0)
        total += count;
    call(WRITE, 1, AT(answer), 15);
    call(WRITE, 1, AT("\n"), 1);
    call(CLOSE, socket, 0, 0);
}

void _start(void) {
    int socket;
    words[0] = 2, words[1] = 1, words[2] = 0;
    socket = call(SOCKETCALL, 1, AT(words), 0);
    words[0] = socket, words[1] = AT(address), words[2] = sizeof address;
    ask(socket, call(SOCKETCALL, 3, AT(words), 0));
    socket = call(SOCKET, 2, 1, 0);
    ask(socket, call(CONNECT, socket, AT(address), sizeof address));
    call(EXIT, 7, 0, 0);
}
