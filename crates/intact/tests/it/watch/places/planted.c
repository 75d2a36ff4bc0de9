// Opens connections at known lines: `// CASE=N` at its end says which case opens how many there.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in to;

static void speak(int one) {
    char text[4096];
    const char *request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    if (write(one, request, strlen(request)) < 0) abort();
    while (read(one, text, sizeof text) > 0) {}
    close(one);
}

__attribute__((noinline)) static int dial(void) {
    int one = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(one, (struct sockaddr *)&to, sizeof to)) abort(); // sync=3 thread=6 pointer=2
    return one;
}

__attribute__((noinline)) static void call(void) {
    speak(dial());
}

__attribute__((noinline)) static void large(int count) {
    volatile char buffer[9000];
    buffer[count] = 1;
    int one = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(one, (struct sockaddr *)&to, sizeof to)) abort(); // large=2
    speak(one);
    buffer[count + 1] = 2;
}

static inline __attribute__((always_inline)) int inlined(void) {
    int one = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(one, (struct sockaddr *)&to, sizeof to)) abort(); // inlined=2
    return one;
}

static void repeat(void (*function)(void), int count) {
    for (int nth = 0; nth < count; nth++) function();
}

static void *thread(void *unused) {
    repeat(call, 2);
    return unused;
}

int main(int count, char **words) {
    (void)count;
    to.sin_family = AF_INET;
    to.sin_port = htons(atoi(words[1]));
    inet_aton("127.0.0.1", &to.sin_addr);
    const char *name = words[2];
    void (*volatile pointer)(void) = call;
    if (!strcmp(name, "sync")) repeat(call, 3);
    if (!strcmp(name, "pointer")) repeat(pointer, 2);
    if (!strcmp(name, "large")) for (int nth = 0; nth < 2; nth++) large(nth);
    if (!strcmp(name, "inlined")) for (int nth = 0; nth < 2; nth++) speak(inlined());
    if (!strcmp(name, "thread")) {
        pthread_t threads[3];
        for (int nth = 0; nth < 3; nth++) pthread_create(&threads[nth], NULL, thread, NULL);
        for (int nth = 0; nth < 3; nth++) pthread_join(threads[nth], NULL);
    }
    return 0;
}
