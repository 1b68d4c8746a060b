/* Which part of its work the engine does, and how often a thread has seen it do so. Included by engine.c. */
#include <pthread.h>
#include <time.h>

enum part { OUTSIDE, CALENDAR, LINKS, COPIES, SWITCHES, ENDPOINTS, PARTS };

struct samples {
    volatile u32 part, ends;
    u64 counts[PARTS];
    pthread_t thread;
};

/* Do `what` as part `of` the work. */
#define AS_PART(of, what) \
    do { \
        u32 part_before_ = engine->samples.part; \
        engine->samples.part = of; \
        what; \
        engine->samples.part = part_before_; \
    } while (0)

#define SAMPLE_NS 50000

static void *take_samples(void *argument) {
    struct samples *samples = argument;
    const struct timespec pause = {0, SAMPLE_NS};
    for (; !samples->ends; samples->counts[samples->part]++)
        nanosleep(&pause, 0);
    return 0;
}
