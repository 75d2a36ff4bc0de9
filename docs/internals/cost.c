/* A client with a stopwatch: N exchanges on one connection (keep) or on one each (new). See cost.py. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double microseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: cost keep|new N PORT\n");
        return 2;
    }
    int keep = words[1][0] == 'k', n = atoi(words[2]), one = 1, s = -1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[3]))};
    inet_aton("127.0.0.1", &to.sin_addr);
    const char *request = keep ? "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
                               : "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    char answer[4096];
    double *took = malloc(n * sizeof *took);
    for (int i = 0; i < n; i++) {
        double from = microseconds();
        if (s < 0) {
            s = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(s, (void *)&to, sizeof to)) {
                perror("connect");
                return 1;
            }
            setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        }
        if (write(s, request, strlen(request)) < 0) return 1;
        if (keep) {
            if (read(s, answer, sizeof answer) <= 0) return 1;
        } else {
            while (read(s, answer, sizeof answer) > 0) {}
            close(s);
            s = -1;
        }
        took[i] = microseconds() - from;
    }
    qsort(took, n, sizeof *took, order);
    printf("%f\n", took[n / 2]);
    return 0;
}
