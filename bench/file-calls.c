/* Loaded before the C library: each write to a file and each lock of one takes as many nanoseconds longer as FILE_CALL_NS says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

static long passed_ns(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - since->tv_sec) * 1000000000L + now.tv_nsec - since->tv_nsec;
}

static void take_longer(void)
{
	static long longer_ns = -1;
	struct timespec since;

	if (longer_ns < 0) {
		const char *given = getenv("FILE_CALL_NS");

		longer_ns = given ? atol(given) : 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &since);
	while (passed_ns(&since) < longer_ns)
		;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at)
{
	static ssize_t (*own)(int, const void *, size_t, off64_t);

	if (!own)
		own = dlsym(RTLD_NEXT, "pwrite64");
	take_longer();
	return own(file, bytes, count, at);
}

int fcntl64(int file, int command, ...)
{
	static int (*own)(int, int, ...);
	va_list rest;
	void *argument;

	va_start(rest, command);
	argument = va_arg(rest, void *);
	va_end(rest);
	if (!own)
		own = dlsym(RTLD_NEXT, "fcntl64");
	take_longer();
	return own(file, command, argument);
}
