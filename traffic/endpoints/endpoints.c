/* The endpoints of a run: workers, parameter servers and ranks, as machines on events.
 *
 * A packet comes to a host (`endpoints_receive`) or a time comes (`endpoints_wake`); the machines send by `send` and
 * note when they want to be called next (`due`). The records have the layout of `records.py`, which writes the C of
 * their structs; Python allocates and reads them. Times are whole picoseconds of the driver's clock. The parts of a
 * paper that researchers change are in files of their own: windows in window.h, the pace in pace.h, losses in
 * recovery.h and asking.h, the order of a rank's connections in order.h.
 */
#include <stdlib.h>
#include <string.h>

#include "timers.h"
#include "values.h"
#include "window.h"
#include "pace.h"
#include "sending.h"
#include "recovery.h"
#include "asking.h"
#include "worker.h"
#include "server.h"
#include "order.h"
#include "rank.h"

/* ---- events ---- */

static struct tree *tree_of(struct endpoints *all, const u8 *frame) {
    u32 key = (u32)get16(frame + AT_JOB) << 16 | get16(frame + AT_TREE), low = 0, high = all->tree_count;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (all->trees[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < all->tree_count && all->trees[low].key == key ? &all->trees[low] : 0;
}

/* A packet that the hosts' filter accepts has come to a host. */
void endpoints_receive(struct endpoints *all, u32 number, s64 now, const u8 *frame) {
    struct host *host = &all->hosts[number];
    if (is_silent(host, now)) {
        host->unheard++;
        return;
    }
    struct tree *tree = tree_of(all, frame);
    int known = 0;
    int (*take)(struct endpoints *, struct tree *, u32, const u8 *, s64);
    if (frame[AT_KIND] == GRADIENT || frame[AT_KIND] == QUESTION)
        take = all->values ? take_chunk : server_receive;
    else
        take = all->values ? take_acknowledgement : worker_receive;
    if (tree)
        known = take(all, tree, number, frame, now);
    host->strangers += !known;
}

static void act(struct endpoints *all, u32 timer, s64 now) {
    if (!all->values)
        worker_act(all, timer, now);
    else if (timer < all->stream_count)
        rank_act(all, all->streams[timer].host, now);
    else
        acknowledgement_act(all, timer - all->stream_count, now);
}

/* Let all streams act that are due. */
void endpoints_wake(struct endpoints *all, s64 now) {
    while (all->due <= now)
        act(all, timers_first(all), now);
}

/* Let a host that was silent, or whose queue was full, go on. */
void endpoints_resume(struct endpoints *all, u32 number, s64 now) {
    struct host *host = &all->hosts[number];
    answer_pending(all, host, now);
    for (u32 i = 0; i < host->streams; i++)
        act(all, host->first_stream + i, now);
    for (u32 i = 0; all->values && i < all->stream_count; i++)
        if (all->trees[all->streams[i].tree].server == number)
            acknowledgement_act(all, i, now);
}

/* Let the PSs of a job wait for an iteration, whose trees have their first sequence numbers. */
void endpoints_listen(struct endpoints *all, u32 job) {
    for (u32 i = 0; i < all->tree_count; i++)
        if (all->trees[i].job == job)
            server_begin(all, &all->trees[i]);
}

/* Begin an iteration of a job, whose trees and streams have their first sequence numbers. */
void endpoints_begin(struct endpoints *all, u32 job, s64 now) {
    struct job *of = &all->jobs[job];
    of->unfinished = 0;
    endpoints_listen(all, job);
    for (u32 i = 0; i < all->stream_count; i++)
        if (all->streams[i].job == job) {
            of->unfinished += !all->values;
            stream_begin(all, &all->streams[i], now);
            timer_set(all, all->values ? all->hosts[all->streams[i].host].first_stream : i, now);
        }
    if (all->values)
        ranks_begin(all, job);
}

/* End a job's iteration: its gradients can change from now on. */
void endpoints_end(struct endpoints *all, u32 job) {
    for (u32 i = 0; i < all->stream_count; i++)
        if (all->streams[i].job == job) {
            all->streams[i].active = all->streams[i].ready = 0;
            if (!all->values)
                timer_set(all, i, NEVER);
        }
}

/* Free what endpoints have allocated. */
void endpoints_close(struct endpoints *all) {
    for (u32 i = 0; i < all->host_count; i++) {
        struct host *host = &all->hosts[i];
        free((void *)host->pending);
        host->pending = host->pending_count = host->pending_room = 0;
    }
}

/* The receiving function of a host's node in virtual time. */
void endpoints_arrive(struct host *host, s64 now, u32 port, const u8 *frame) {
    struct endpoints *all = (struct endpoints *)host->all;
    endpoints_receive(all, (u32)(host - all->hosts), now, frame);
}

/* A driver's function for endpoints that only listen. */
void endpoints_mute(void *context, u32 way, const u8 *bytes, u32 length) {}

#include "live.h"
