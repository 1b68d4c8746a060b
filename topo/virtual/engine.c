/* A network in virtual time: links that send packets one after the other, and nodes that receive them.
 *
 * Time is in whole picoseconds. Links and nodes are arrays that Python allocates and reads; `struct link` and `struct
 * node` have the layout of their records in engine.py. Of simultaneous events arrivals are first, in the order of the
 * links' numbers, so that a run is the same on every machine.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define PS_PER_S 1000000000000ll
#define NONE 0xFFFFFFFFu
#define NEVER INT64_MAX

#include "hops.h"
#include "parts.h"
#include "series.h"
#include "socket_filter.h"
#include "recirculation.h"
#include "source.h"
#include "tap.h"

/* With LAST in the port the bytes of a received packet leave without a copy: the node does not use them any more. */
#define LAST 0x80000000u
typedef void emit_fn(void *context, u32 port, const u8 *bytes, u32 length);
typedef void receive_fn(void *self, s64 now, u32 port, u8 *bytes, u32 length, emit_fn *emit, void *context);

struct packet {
    struct packet *next;
    s64 starts, arrives; /* times: its first bit leaves, its last bit reaches the other end */
    u32 length, size; /* `size`: the number of its buffer's size */
    u32 hop; /* the number of its hop's record, or NONE */
    u32 passes, port; /* remaining recirculations, and its ingress port; else 0 */
    u8 bytes[];
};

/* The fields that every packet needs at once stand together, in lines of 64 bytes. */
struct link {
    s64 at;    /* the time at which its first packet arrives, if it has one */
    u32 after; /* the next link of the same list, or NONE */
    u32 up;
    struct packet *first, *last, *starting; /* packets in flight or waiting, and the first that waits */
    u32 waiting, most_waiting;
    s64 free_at; /* the time at which all its packets have left */
    u32 limit;   /* the length of the queue in packets; 0: unlimited */
    u32 to_node;

    u64 rate_bps;   /* 0: sending takes no time */
    s64 delay_ps;
    s64 latency_ps; /* the time before a packet reaches the queue */
    u64 sent_packets, sent_bytes;
    struct tap *near;        /* of the port at its beginning; 0: no tap */
    struct packet *untapped; /* the first of its packets that the near tap has not written */
    u32 losses, in_burst;    /* what a loss does; whether the last packet was lost */

    u64 received_packets, received_bytes, dropped, lost;
    struct tap *far; /* of the port at its end; 0: no tap */
    u64 draw;
    u32 to_port, begins, ends; /* of 2^32: how probably the next packet begins a burst of losses, or ends it */
    u32 unused;
};

/* A packet that a link loses is gone, or the link sends it again at once. */
enum { LOSES = 1, REPEATS = 2 };

struct node {
    receive_fn *receive; /* 0: its packets go to the inbox */
    void *self;
    u32 first_port, ports; /* its part of `link_at` */
    const struct instruction *filter; /* accepts the packets of a host; 0: all packets of a switch */
    u64 refused;                      /* packets that the filter did not accept */
    const struct recirculation *const *recirculations; /* of a switch, by port; 0: no recirculation */
};

/* Source `who` sends. */
struct event {
    s64 at;
    u32 who;
};

#include "calendar.h"

#define SIZES 8 /* of buffers; the largest holds a packet of 128 KiB */

struct engine {
    struct link *links;
    struct node *nodes;
    const u32 *link_at; /* at a node's first_port + port: the outgoing link, or NONE */
    s64 now;
    struct packet *current; /* the packet that has arrived, until it is sent on */
    u32 node;               /* the node that processes a packet */
    u32 cause;              /* the hop whose arrival is being processed, or NONE */
    u32 arrival_bytes;      /* the size of a record in the inbox */
    struct series *series;  /* 0: no recording */
    struct hops *followed;  /* 0: no recording */
    u64 hops;
    struct packet *free[SIZES]; /* buffers that hold no packet, by size */
    struct slab *slabs;
    u8 *inbox;
    u64 inbox_used, inbox_room;
    const s64 *due; /* the time at which `wake` is to be called; 0: never */
    void (*wake)(void *self, s64 now);
    void *self;
    const u32 *halted; /* whether the run is to stop */
    struct event *heap;
    u32 heap_length, source_count;
    struct source *sources;
    struct calendar calendar;
    struct samples samples;
};

/* The head of a packet's record in the inbox, before its bytes. */
struct arrival {
    s64 at;
    u32 node, length;
};

/* ---- buffers ---- */

/* Memory for several buffers of one size. */
struct slab {
    struct slab *next;
    u64 unused[7];
    u8 buffers[];
};

static u32 room_of(u32 size) { return size ? 1024u << size : 512 - sizeof(struct packet); }

static void add_slab(struct engine *engine, u32 size) {
    u64 bytes = sizeof(struct packet) + room_of(size) + 63 & ~63ull, count = size ? 4 : 64;
    struct slab *slab = aligned_alloc(64, sizeof *slab + count * bytes);
    if (!slab)
        abort();
    slab->next = engine->slabs, engine->slabs = slab;
    for (u64 i = count; i--;) {
        struct packet *packet = (struct packet *)(slab->buffers + i * bytes);
        packet->size = size, packet->next = engine->free[size], engine->free[size] = packet;
    }
}

static struct packet *take_buffer(struct engine *engine, u32 length) {
    u32 size = 0;
    while (length > room_of(size))
        if (++size == SIZES)
            abort();
    if (!engine->free[size])
        add_slab(engine, size);
    struct packet *packet = engine->free[size];
    engine->free[size] = packet->next;
    __builtin_prefetch(packet->next);
    return packet;
}

static void give_back(struct engine *engine, struct packet *packet) {
    packet->next = engine->free[packet->size], engine->free[packet->size] = packet;
}

/* ---- links ---- */

static void begin_sending(struct link *link, s64 now) {
    for (; link->starting && link->starting->starts <= now; link->starting = link->starting->next)
        link->waiting--;
}

static s64 time_to_send(const struct link *link, u32 bytes) {
    u64 bits = (u64)bytes * 8, most = UINT64_MAX / PS_PER_S;
    if (!link->rate_bps)
        return 0;
    if (bits < most)
        return (bits * PS_PER_S + link->rate_bps - 1) / link->rate_bps;
    return ((unsigned __int128)bits * PS_PER_S + link->rate_bps - 1) / link->rate_bps;
}

static void observe(struct engine *engine, u32 number, s64 given, struct packet *packet) {
    const struct link *link = &engine->links[number];
    struct hop hop = {given, packet->starts, link->free_at, packet->arrives, engine->cause, number};
    if (engine->series)
        note_sending(engine->series, number, hop.given, hop.starts, hop.left, link->waiting);
    if (engine->followed)
        packet->hop = note_hop(engine->followed, &hop, packet->bytes, packet->length);
}

/* Whether a link loses the next packet, by Gilbert and Elliott: of a burst all packets, and none between bursts. */
static int is_lost(struct link *link) {
    link->draw = link->draw * 6364136223846793005u + 1442695040888963407u;
    u32 drawn = (u32)(link->draw >> 32);
    return link->in_burst = link->in_burst ? drawn >= link->ends : drawn < link->begins;
}

/* Whether a link takes one more packet; else it is lost, and counted. */
static int admits(const struct engine *engine, struct link *link) {
    begin_sending(link, engine->now + link->latency_ps);
    if (link->up && !(link->limit && link->waiting >= link->limit))
        return 1;
    *(link->up ? &link->dropped : &link->lost) += 1;
    return 0;
}

/* Give a link a packet that it admits. */
static void give(struct engine *engine, u32 number, struct packet *packet, u32 length) {
    struct link *link = &engine->links[number];
    s64 now = engine->now + link->latency_ps;
    packet->length = length, packet->next = 0, packet->hop = NONE, packet->passes = 0;
    packet->starts = link->free_at > now ? link->free_at : now;
    s64 takes = time_to_send(link, length);
    link->free_at = packet->starts + takes;
    if (link->losses == REPEATS)
        for (; is_lost(link); link->lost++)
            link->free_at += takes;
    packet->arrives = link->free_at + link->delay_ps;
    if (packet->starts > now) {
        if (!link->starting)
            link->starting = packet;
        if (++link->waiting > link->most_waiting)
            link->most_waiting = link->waiting;
    }
    if (engine->series || engine->followed)
        observe(engine, number, now, packet);
    link->sent_packets++, link->sent_bytes += length;
    if (link->near && !link->untapped)
        link->untapped = packet;
    if (link->first) {
        link->last->next = packet;
    } else {
        link->first = packet, link->at = packet->arrives;
        AS_PART(CALENDAR, add_arrival(&engine->calendar, engine->links, number));
    }
    link->last = packet;
}

/* Give a link a new packet of `length` bytes: the bytes of `head`, then those of `body`. */
static void give_new(struct engine *engine, u32 number, u32 length, const u8 *head, u64 head_bytes, const u8 *body) {
    if (!admits(engine, &engine->links[number]))
        return;
    struct packet *packet = take_buffer(engine, length);
    u64 first = length < head_bytes ? length : head_bytes;
    AS_PART(COPIES, memcpy(packet->bytes, head, first); memcpy(packet->bytes + first, body, length - first));
    give(engine, number, packet, length);
}

/* Give a link the packet that has arrived. Returns 0 if it is lost. */
static struct packet *pass_on(struct engine *engine, u32 number, u32 length) {
    struct packet *packet = engine->current;
    if (!admits(engine, &engine->links[number]))
        return 0;
    give(engine, number, packet, length);
    engine->current = 0;
    return packet;
}

/* Pass packets that have left by now to the near tap. */
static void tap_departures(const struct engine *engine, struct link *link) {
    for (struct packet *packet; (packet = link->untapped); link->untapped = packet->next) {
        s64 left_at = packet->arrives - link->delay_ps;
        if (left_at > engine->now)
            return;
        tap_packet(link->near, left_at, packet->bytes, packet->length);
    }
}

static void tap_arrival(const struct engine *engine, struct tap *tap, const struct packet *packet) {
    tap_departures(engine, &engine->links[tap->out]);
    tap_packet(tap, packet->arrives, packet->bytes, packet->length);
}

static struct packet *take_first(struct engine *engine, u32 number) {
    struct link *link = &engine->links[number];
    struct packet *packet = link->first;
    begin_sending(link, engine->now);
    tap_departures(engine, link);
    if ((link->first = packet->next)) {
        link->at = link->first->arrives;
        AS_PART(CALENDAR, add_arrival(&engine->calendar, engine->links, number));
    }
    return packet;
}

/* ---- nodes ---- */

static void emit(void *context, u32 port, const u8 *bytes, u32 length) {
    struct engine *engine = context;
    const struct node *node = &engine->nodes[engine->node];
    u32 at = port & ~LAST, link = at < node->ports ? engine->link_at[node->first_port + at] : NONE;
    if (link == NONE) /* it is lost, as in the kernel */
        return;
    if (port & LAST && engine->current && bytes == engine->current->bytes)
        AS_PART(LINKS, pass_on(engine, link, length));
    else
        AS_PART(LINKS, give_new(engine, link, length, bytes, length, bytes));
}

static void keep(struct engine *engine, u32 node, const struct packet *packet) {
    u32 size = engine->arrival_bytes, room = size - sizeof(struct arrival);
    if (engine->inbox_used + size > engine->inbox_room) {
        engine->inbox_room = 2 * (engine->inbox_used + size);
        if (!(engine->inbox = realloc(engine->inbox, engine->inbox_room)))
            abort();
    }
    u8 *at = engine->inbox + engine->inbox_used;
    u32 kept = packet->length < room ? packet->length : room;
    struct arrival head = {packet->arrives, node, packet->length};
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, packet->bytes, kept);
    memset(at + sizeof head + kept, 0, room - kept);
    engine->inbox_used += size;
}

/* Recirculate the present packet `passes` times before the switch processes it; for 0 it is processed now. */
static void process(struct engine *engine, u32 port, u32 passes, u32 link) {
    struct node *node = &engine->nodes[engine->node];
    struct packet *packet = engine->current;
    if (!passes)
        AS_PART(node->filter ? ENDPOINTS : SWITCHES,
                node->receive(node->self, engine->now, port, packet->bytes, packet->length, emit, engine));
    else if ((packet = pass_on(engine, link, packet->length)))
        packet->passes = passes, packet->port = port;
}

static void arrive(struct engine *engine, struct link *link, const struct packet *packet) {
    struct node *node = &engine->nodes[link->to_node];
    link->received_packets++, link->received_bytes += packet->length, engine->hops++;
    if (link->far)
        tap_arrival(engine, link->far, packet);
    if (node->filter && !accepts(node->filter, packet->bytes, packet->length))
        node->refused++;
    else if (node->receive) {
        engine->cause = node->filter ? NONE : engine->cause; /* no hop is the cause of what an endpoint sends */
        const struct recirculation *by = node->recirculations ? node->recirculations[link->to_port] : 0;
        int again = is_recirculated(by, packet->bytes, packet->length);
        process(engine, link->to_port, again ? by->times : 0, again ? by->link : NONE);
    } else
        AS_PART(COPIES, keep(engine, link->to_node, packet));
}

static void deliver(struct engine *engine, u32 number) {
    struct link *link = &engine->links[number];
    struct packet *packet = engine->current = take_first(engine, number);
    if (link->up && !(link->losses == LOSES && is_lost(link))) {
        engine->node = link->to_node, engine->cause = packet->hop;
        if (packet->passes)
            process(engine, packet->port, packet->passes - 1, number);
        else
            arrive(engine, link, packet);
        engine->cause = NONE;
    } else {
        link->lost++;
        if (packet->hop != NONE)
            hop_at(engine->followed, packet->hop)->arrives = LOST;
    }
    if (engine->current)
        give_back(engine, packet);
    engine->current = 0;
}

/* ---- sources ---- */

static int sooner(struct event one, struct event other) {
    return one.at < other.at || (one.at == other.at && one.who < other.who);
}

static void rise(struct event *heap, u32 at) {
    struct event event = heap[at];
    for (; at && sooner(event, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = event;
}

static void sink(struct event *heap, u32 length, u32 at) {
    struct event event = heap[at];
    for (u32 child; (child = 2 * at + 1) < length; at = child) {
        child += child + 1 < length && sooner(heap[child + 1], heap[child]);
        if (!sooner(heap[child], event))
            break;
        heap[at] = heap[child];
    }
    heap[at] = event;
}

static void remove_event(struct engine *engine, u32 at) {
    struct event *heap = engine->heap, last = heap[--engine->heap_length];
    if (at == engine->heap_length)
        return;
    heap[at] = last;
    rise(heap, at);
    sink(heap, engine->heap_length, at);
}

/* Postpone the next source. */
static void postpone(struct engine *engine, s64 at) {
    engine->heap[0].at = at;
    sink(engine->heap, engine->heap_length, 0);
}

/* Let the next source send. It waits while the queue before its link is full, like a blocking socket. */
static void send_from_source(struct engine *engine) {
    struct source *source = &engine->sources[engine->heap[0].who];
    struct link *link = &engine->links[source->link];
    begin_sending(link, engine->now);
    if (link->waiting >= source->room) {
        postpone(engine, link->starting->starts);
        return;
    }
    u32 frame = source->next;
    source->next = frame + 1 < source->frames ? frame + 1 : 0;
    source->due += source->interval_ps;
    if (--source->left)
        postpone(engine, source->due > engine->now ? source->due : engine->now);
    else
        remove_event(engine, 0);
    u32 length = source->lengths[frame];
    const u8 *bytes = source->bytes + source->stride * frame;
    give_new(engine, source->link, length, bytes, length, bytes);
}

/* ---- the interface to Python ---- */

u32 record_sizes(u32 what) {
    const u32 sizes[] = {sizeof(struct link), sizeof(struct node), sizeof(struct source), sizeof(struct sample),
                         sizeof(struct series), sizeof(struct hop), sizeof(struct hops), sizeof(struct recirculation)};
    return sizes[what];
}

struct engine *engine_new(struct link *links, u32 link_count, struct node *nodes, const u32 *link_at, u32 arrival_bytes) {
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine || !(engine->calendar.open = calloc(link_count + 1, sizeof *engine->calendar.open)))
        abort();
    engine->calendar.later = NONE, engine->calendar.soonest = NEVER;
    engine->links = links, engine->nodes = nodes, engine->link_at = link_at, engine->arrival_bytes = arrival_bytes;
    engine->cause = NONE;
    return engine;
}

/* Record the series of links and the hops of packets from now on; 0: no recording. */
void engine_observe(struct engine *engine, struct series *series, struct hops *hops) {
    engine->series = series, engine->followed = hops;
}

/* Rows of `size` bytes each, `stride` bytes apart. */
struct rows {
    const u8 *bytes;
    u64 stride, size;
};

/* Give `count` packets to links, now: the first `lengths` bytes of a row of `heads` and the same row of `bodies`. */
void engine_send(struct engine *engine, u32 count, const u32 *links, const u32 *lengths, const s64 *rows,
                 const struct rows *heads, const struct rows *bodies) {
    for (u32 i = 0; i < count; i++)
        AS_PART(LINKS, give_new(engine, links[i], lengths[i], heads->bytes + heads->stride * rows[i], heads->size,
                                bodies->bytes + bodies->stride * rows[i]));
}

/* Give a packet to a link, now. */
void engine_give(struct engine *engine, u32 link, const u8 *bytes, u32 length) {
    AS_PART(LINKS, give_new(engine, link, length, bytes, length, bytes));
}

/* Call `wake` whenever `*due` has come, after the packets that arrive at the same time; stop when `*halted` is set. */
void engine_attach(struct engine *engine, const s64 *due, const u32 *halted, void (*wake)(void *self, s64 now), void *self) {
    engine->due = due, engine->halted = halted, engine->wake = wake, engine->self = self;
}

static s64 sooner_of(s64 one, s64 other) { return one < other ? one : other; }

static s64 next_source(const struct engine *engine) { return engine->heap_length ? engine->heap[0].at : NEVER; }

/* Process all events up to and including `until`, or until the run halts or about `most` packets have arrived. */
static void run(struct engine *engine, s64 until, u64 most) {
    u64 last = engine->hops + most;
    while (engine->hops < last) {
        s64 source = next_source(engine), due = engine->due ? *engine->due : NEVER;
        if (has_arrival(&engine->calendar, engine->links, sooner_of(until, sooner_of(source, due)))) {
            u32 link = take_arrival(&engine->calendar, engine->links);
            engine->now = engine->links[link].at;
            AS_PART(LINKS, deliver(engine, link));
        } else if (source > until && due > until) {
            engine->now = until;
            return;
        } else if (source <= due) {
            engine->now = source;
            AS_PART(LINKS, send_from_source(engine));
        } else {
            engine->now = due > engine->now ? due : engine->now;
            AS_PART(ENDPOINTS, engine->wake(engine->self, engine->now));
        }
        if (engine->halted && *engine->halted)
            return;
    }
}

void engine_run(struct engine *engine, s64 until, u64 most) { AS_PART(CALENDAR, run(engine, until, most)); }

/* The time of the next event; NEVER if there is none. */
s64 engine_next(const struct engine *engine) {
    return sooner_of(next_source(engine), first_arrival(&engine->calendar, engine->links));
}

/* Add a source, which sends its first frame when it is due; returns its number. */
u32 engine_add_source(struct engine *engine, const struct source *source) {
    u32 number = engine->source_count++;
    engine->sources = realloc(engine->sources, sizeof *source * engine->source_count);
    engine->heap = realloc(engine->heap, sizeof *engine->heap * engine->source_count);
    if (!engine->sources || !engine->heap)
        abort();
    engine->sources[number] = *source;
    engine->heap[engine->heap_length] = (struct event){source->due, number};
    rise(engine->heap, engine->heap_length++);
    return number;
}

u64 engine_source_left(const struct engine *engine, u32 number) { return engine->sources[number].left; }

/* Stop a source. */
void engine_stop_source(struct engine *engine, u32 number) {
    for (u32 at = 0; at < engine->heap_length; at++)
        if (engine->heap[at].who == number)
            remove_event(engine, at);
    engine->sources[number].left = 0;
}

/* Write the packets that leave by link `out` and arrive by link `in` to a file from now on. */
struct tap *engine_tap(struct engine *engine, u32 out, u32 in, int descriptor) {
    return engine->links[out].near = engine->links[in].far = tap_new(out, descriptor);
}

/* End a tap; returns 0, or the first error of writing. `packets` becomes the number of packets in the file. */
int engine_untap(struct engine *engine, u32 out, u32 in, u64 *packets) {
    struct link *link = &engine->links[out];
    struct tap *tap = link->near;
    tap_departures(engine, link);
    link->near = engine->links[in].far = 0, link->untapped = 0;
    return tap_close(tap, packets);
}

/* Begin to count what the engine does. */
void engine_begin_samples(struct engine *engine) {
    engine->samples.ends = 0;
    if (pthread_create(&engine->samples.thread, 0, take_samples, &engine->samples))
        abort();
}

/* Stop counting; returns the counts of the parts. */
const u64 *engine_end_samples(struct engine *engine) {
    engine->samples.ends = 1;
    pthread_join(engine->samples.thread, 0);
    return engine->samples.counts;
}

s64 engine_now(const struct engine *engine) { return engine->now; }
u64 engine_hops(const struct engine *engine) { return engine->hops; }
const u8 *engine_inbox(const struct engine *engine, u64 *used) { return *used = engine->inbox_used, engine->inbox; }
void engine_empty_inbox(struct engine *engine) { engine->inbox_used = 0; }

void engine_free(struct engine *engine) {
    for (struct slab *slab = engine->slabs, *next; slab; slab = next)
        next = slab->next, free(slab);
    free(engine->inbox), free(engine->heap), free(engine->sources), free(engine->calendar.open), free(engine);
}
