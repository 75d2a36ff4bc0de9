/* The system calls of a load generator and nothing else: no parsing, no clock per request, no records. What a client
   on epoll needs more than this is its own. See peers.py. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 65536, EVENTS = 1024 };
static struct sockaddr_in to = {.sin_family = AF_INET};
static int epoll, is_sent[MOST], ready[EVENTS];
static char request[128], response[MOST];

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void check(int result, const char *call) {
    if (result < 0) {
        perror(call);
        exit(1);
    }
}

static void dial(void) {
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    check(s >= MOST ? -1 : s, "socket");
    if (connect(s, (struct sockaddr *)&to, sizeof to) && errno != EINPROGRESS) check(-1, "connect");
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = s};
    check(epoll_ctl(epoll, EPOLL_CTL_ADD, s, &event), "epoll_ctl");
    is_sent[s] = 0;
}

int main(int count, char **words) {
    if (count != 5) {
        fprintf(stderr, "usage: floor keep|close PORT CONNECTIONS SECONDS\n");
        return 2;
    }
    int keep = words[1][0] == 'k', connections = atoi(words[3]);
    inet_aton("127.0.0.1", &to.sin_addr);
    to.sin_port = htons(atoi(words[2]));
    int length = snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n%s\r\n", words[2],
                          keep ? "" : "Connection: close\r\n");
    check(epoll = epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    double end = seconds() + atof(words[4]);
    while (connections-- > 0) dial();
    static struct epoll_event events[EVENTS];
    while (seconds() < end) {
        int happened = epoll_wait(epoll, events, EVENTS, 1000), read = 0;
        for (int place = 0; place < happened; place++) {
            int s = events[place].data.fd, has_ended = events[place].events & EPOLLRDHUP;
            if (!is_sent[s]) {
                if (events[place].events & EPOLLOUT) is_sent[s] = send(s, request, length, MSG_NOSIGNAL) > 0;
                continue;
            }
            if (!(events[place].events & EPOLLIN)) continue;
            ssize_t got = recv(s, response, sizeof response, 0);
            if (got < 0 && errno == EAGAIN) continue;
            check(got, "recv");
            if (keep) {
                ready[read++] = s;
            } else if (got == 0 || has_ended || recv(s, response, sizeof response, 0) == 0) {
                close(s);
                dial();
            }
        }
        for (int place = 0; place < read; place++) send(ready[place], request, length, MSG_NOSIGNAL);
    }
    return 0;
}
