/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs many TCP flows that send as fast as possible: many_flows receive PORT | send HOST PORT
 * CONTROLLER FLOWS SECONDS. Received data are not copied, so that the program costs little compared
 * with the flows. The sender prints "open" when all flows are open; SECONDS count from then. At its
 * end it prints the bytes sent, the number of failed flows, and the number of flows without an
 * acknowledgement in the second half.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256

static char block[1 << 14];

static void fail(const char *what)
{
	fprintf(stderr, "many_flows: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void watch(int epoll, int fd, unsigned int events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		fail("epoll_ctl");
}

static _Noreturn void receive_all(int port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct epoll_event events[EVENTS];
	int epoll = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0),
	    on = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 4096))
		fail("listen");
	watch(epoll, listener, EPOLLIN);
	for (;;) {
		int n = epoll_wait(epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd, one;

			if (fd == listener) {
				while ((one = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
					watch(epoll, one, EPOLLIN);
			} else if (recv(fd, NULL, 1 << 20, MSG_TRUNC) == 0) {
				close(fd);
			}
		}
	}
}

static int open_flow(const char *host, int port, const char *controller, int room)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		fail("socket");
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, controller, strlen(controller)))
		fail(controller);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		fail(host);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS)
		fail("connect");
	return fd;
}

/* Connects, and retries for at most a minute until the receiver listens. */
static void wait_for(const char *host, int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	double end = now_s() + 60;

	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		fail(host);
	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0)
			fail("socket");
		if (!connect(fd, (struct sockaddr *)&to, sizeof(to))) {
			close(fd);
			return;
		}
		if (errno != ECONNREFUSED || now_s() > end)
			fail("connect");
		close(fd);
		usleep(10000);
	}
}

static unsigned long long acknowledged(int fd)
{
	/* The C library's tcp_info ends before tcpi_bytes_acked, 8 bytes at 120 (linux/tcp.h). */
	unsigned char info[128] = { 0 };
	unsigned long long bytes;
	socklen_t size = sizeof(info);

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size);
	memcpy(&bytes, info + 120, sizeof(bytes));
	return bytes;
}

static int send_all(const char *host, int port, const char *controller, int flows, double seconds)
{
	struct epoll_event events[EVENTS];
	int epoll = epoll_create1(0), failed = 0, silent = 0, *fds = calloc(flows, sizeof(*fds));
	unsigned long long sent = 0, *before = calloc(flows, sizeof(*before));
	double end, half;
	/* Beyond 1,000 flows each has a smaller buffer, so the total stays the same. */
	int room = (1 << 17) * 1000LL / (flows > 1000 ? flows : 1000);

	if (!fds || !before)
		fail("calloc");
	wait_for(host, port);
	for (int i = 0; i < flows; i++) {
		fds[i] = open_flow(host, port, controller, room);
		watch(epoll, fds[i], EPOLLOUT);
		/* Starts are spread, so that the first packets fit into the queue. */
		usleep(1000);
	}
	puts("open");
	fflush(stdout);
	end = now_s() + seconds, half = end - seconds / 2;
	while (now_s() < end) {
		int n = epoll_wait(epoll, events, EVENTS, 100);

		for (; half && now_s() >= half; half = 0)
			for (int i = 0; i < flows; i++)
				before[i] = acknowledged(fds[i]);
		for (int i = 0; i < n; i++) {
			ssize_t size = send(events[i].data.fd, block, sizeof(block), MSG_NOSIGNAL);

			if (size > 0) {
				sent += size;
			} else if (size < 0 && errno != EAGAIN) {
				failed++;
				epoll_ctl(epoll, EPOLL_CTL_DEL, events[i].data.fd, NULL);
			}
		}
	}
	for (int i = 0; i < flows; i++)
		silent += acknowledged(fds[i]) == before[i];
	printf("{\"bytes\": %llu, \"failed\": %d, \"silent\": %d}\n", sent, failed, silent);
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit files = { 65536, 65536 };

	setrlimit(RLIMIT_NOFILE, &files);
	if (argc == 3 && !strcmp(argv[1], "receive"))
		receive_all(atoi(argv[2]));
	if (argc == 7 && !strcmp(argv[1], "send"))
		return send_all(argv[2], atoi(argv[3]), argv[4], atoi(argv[5]), atof(argv[6]));
	fprintf(stderr,
		"usage: many_flows receive PORT | send HOST PORT CONTROLLER FLOWS SECONDS\n");
	return 2;
}
