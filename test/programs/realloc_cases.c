/* SPDX-License-Identifier: MIT
 * Every way a realloc can go, each in a function of its own; content is checked throughout.
 * At the end live: moved 100 x 5000 B, in_place 100 x 110 B, failed 1 x 100 B, from_null 10 x
 * 300 B, grown 1 x 64 MiB, shrunk 10 x 50 B, array 10 x 800 B; to_zero leaves nothing. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include "common.h"

static void fill(unsigned char *object, size_t size)
{
    for (size_t i = 0; i < size; i++)
        object[i] = (unsigned char)(i * 7 + 3);
}

static void check_content(const unsigned char *object, size_t size)
{
    for (size_t i = 0; i < size; i++)
        CHECK(object[i] == (unsigned char)(i * 7 + 3));
}

static NOINLINE void *first(size_t size)
{
    void *object = malloc(size);
    CHECK(object);
    fill(object, size);
    return object;
}

static NOINLINE void moved(void)
{
    void *object = first(100);
    void *wall = malloc(16); /* nothing grows through it */
    keep(wall);
    object = realloc(object, 5000);
    CHECK(object);
    check_content(object, 100);
}

static NOINLINE void in_place(void)
{
    void *object = realloc(first(104), 110); /* the same chunk in every allocator's size classes */
    CHECK(object);
    check_content(object, 104);
}

static NOINLINE void failed(void)
{
    void *object = first(100);
    volatile size_t too_many = SIZE_MAX / 2;
    errno = 0;
    CHECK(!realloc(object, PTRDIFF_MAX));
    printf("errno %d\n", errno); /* the allocator's habit: not every one says ENOMEM */
    check_content(object, 100);
    errno = 0;
    CHECK(!reallocarray(object, too_many, 3));
    printf("errno %d\n", errno);
    check_content(object, 100);
}

static NOINLINE void failed_by_limit(void)
{
    struct rlimit old, tight;
    void *object = first(100);
    CHECK(!getrlimit(RLIMIT_AS, &old));
    tight = old;
    tight.rlim_cur = 1 << 20; /* already exceeded: nothing more can be mapped */
    CHECK(!setrlimit(RLIMIT_AS, &tight));
    CHECK(!realloc(object, (size_t)1 << 30));
    CHECK(!malloc((size_t)1 << 30) && !calloc(1 << 15, 1 << 15));
    CHECK(!setrlimit(RLIMIT_AS, &old));
    check_content(object, 100);
    free(object);
}

static NOINLINE void to_zero(void)
{
    CHECK(!realloc(first(100), 0));
}

static NOINLINE void from_null(void)
{
    void *object = realloc(NULL, 300);
    CHECK(object);
    fill(object, 300);
}

static NOINLINE void grown(void)
{
    unsigned char *object = first(1 << 20);
    for (size_t size = 2 << 20; size <= 64 << 20; size *= 2) {
        object = realloc(object, size);
        CHECK(object);
    }
    check_content(object, 1 << 20);
}

static NOINLINE void shrunk(void)
{
    void *object = realloc(first(10000), 50);
    CHECK(object);
    check_content(object, 50);
}

static NOINLINE void array(void)
{
    void *object = reallocarray(first(40), 100, 8);
    CHECK(object);
    check_content(object, 40);
}

int main(void)
{
    for (int i = 0; i < 100; i++) {
        moved();
        in_place();
        to_zero();
    }
    for (int i = 0; i < 10; i++) {
        from_null();
        shrunk();
        array();
    }
    failed();
    failed_by_limit();
    grown();
    return 0;
}
