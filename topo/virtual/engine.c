/* A network in virtual time: links that send packets one after the other, and nodes that receive them.
 *
 * Time is in whole picoseconds. Links and nodes are arrays that Python allocates and reads; `struct link` and `struct
 * node` have the layout of their records in engine.py. Simultaneous events are processed in the order of the links'
 * numbers, so that a run is the same on every machine.
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
#define SMALL 448 /* bytes of a buffer for a short packet; others have room for LARGE */
#define LARGE 2048

#include "hops.h"
#include "series.h"
#include "socket_filter.h"
#include "recirculation.h"
#include "source.h"
#include "tap.h"

typedef void emit_fn(void *context, u32 port, const u8 *bytes, u32 length);
typedef void receive_fn(void *self, s64 now, u32 port, u8 *bytes, u32 length, emit_fn *emit, void *context);

struct packet {
    struct packet *next;
    s64 starts, arrives; /* times: its first bit leaves, its last bit reaches the other end */
    u32 length, room;
    u32 hop; /* the number of its hop's record, or NONE */
    u32 passes, port; /* remaining recirculations, and its ingress port; else 0 */
    u8 bytes[];
};

struct link {
    u64 rate_bps; /* 0: sending takes no time */
    s64 delay_ps;
    s64 latency_ps; /* the time before a packet reaches the queue */
    u32 to_node, to_port;
    u32 limit; /* the length of the queue in packets; 0: unlimited */
    u32 up;
    u64 sent_packets, sent_bytes, received_packets, received_bytes, dropped, lost;
    u32 waiting, most_waiting;
    s64 free_at; /* the time at which all its packets have left */
    struct packet *first, *last, *starting; /* packets in flight or waiting, and the first that waits */
    struct tap *near, *far;                 /* of the ports at its ends; 0: no tap */
    struct packet *untapped;                /* the first of its packets that the near tap has not written */
};

struct node {
    receive_fn *receive; /* 0: its packets go to the inbox */
    void *self;
    u32 first_port, ports; /* its part of `link_at` */
    const struct instruction *filter; /* accepts the packets of a host; 0: all packets of a switch */
    u64 refused;                      /* packets that the filter did not accept */
    const struct recirculation *const *recirculations; /* of a switch, by port; 0: no recirculation */
};

/* An event: the first packet of a link arrives, or a source sends; sources are numbered after all links. */
struct event {
    s64 at;
    u32 who;
};

struct engine {
    struct link *links;
    struct node *nodes;
    const u32 *link_at; /* at a node's first_port + port: the outgoing link, or NONE */
    struct event *heap;
    u32 heap_length, link_count;
    struct source *sources;
    u32 source_count;
    u32 node; /* the node that processes a packet */
    s64 now;
    u64 hops;
    struct packet *free_small, *free_large;
    u8 *inbox;
    u64 inbox_used, inbox_room;
    u32 arrival_bytes; /* the size of a record in the inbox */
    struct series *series; /* 0: no recording */
    struct hops *followed; /* 0: no recording */
    const s64 *due;        /* the time at which `wake` is to be called; 0: never */
    void (*wake)(void *self, s64 now);
    void *self;
    const u32 *halted; /* whether the run is to stop */
    u32 cause;             /* the hop whose arrival is being processed, or NONE */
};

/* The head of a packet's record in the inbox, before its bytes. */
struct arrival {
    s64 at;
    u32 node, length;
};

/* ---- buffers ---- */

static struct packet *take_buffer(struct engine *engine, u32 length) {
    struct packet **free_ones = length <= SMALL ? &engine->free_small : &engine->free_large;
    struct packet *packet = *free_ones;
    if (packet) {
        *free_ones = packet->next;
        return packet;
    }
    u32 room = length <= SMALL ? SMALL : length <= LARGE ? LARGE : length;
    if (!(packet = malloc(sizeof *packet + room)))
        abort();
    packet->room = room;
    return packet;
}

static void give_back(struct engine *engine, struct packet *packet) {
    struct packet **free_ones = packet->room == SMALL ? &engine->free_small : &engine->free_large;
    if (packet->room > LARGE) {
        free(packet);
        return;
    }
    packet->next = *free_ones;
    *free_ones = packet;
}

/* ---- the heap of events ---- */

static int sooner(struct event one, struct event other) {
    return one.at < other.at || (one.at == other.at && one.who < other.who);
}

static void rise(struct engine *engine, u32 at) {
    struct event event = engine->heap[at];
    for (; at && sooner(event, engine->heap[(at - 1) / 2]); at = (at - 1) / 2)
        engine->heap[at] = engine->heap[(at - 1) / 2];
    engine->heap[at] = event;
}

static void sink(struct engine *engine, u32 at) {
    struct event event = engine->heap[at];
    for (u32 child, length = engine->heap_length; (child = 2 * at + 1) < length; at = child) {
        child += child + 1 < length && sooner(engine->heap[child + 1], engine->heap[child]);
        if (!sooner(engine->heap[child], event))
            break;
        engine->heap[at] = engine->heap[child];
    }
    engine->heap[at] = event;
}

static void add_event(struct engine *engine, s64 at, u32 who) {
    engine->heap[engine->heap_length] = (struct event){at, who};
    rise(engine, engine->heap_length++);
}

static void remove_event(struct engine *engine, u32 at) {
    struct event last = engine->heap[--engine->heap_length];
    if (at == engine->heap_length)
        return;
    engine->heap[at] = last;
    rise(engine, at);
    sink(engine, at);
}

/* Postpone the next event. */
static void postpone(struct engine *engine, s64 at) {
    engine->heap[0].at = at;
    sink(engine, 0);
}

/* ---- links ---- */

static void begin_sending(struct link *link, s64 now) {
    for (; link->starting && link->starting->starts <= now; link->starting = link->starting->next)
        link->waiting--;
}

static s64 time_to_send(const struct link *link, u32 bytes) {
    unsigned __int128 bits = (unsigned __int128)bytes * 8 * PS_PER_S;
    return link->rate_bps ? (s64)((bits + link->rate_bps - 1) / link->rate_bps) : 0;
}

static void observe(struct engine *engine, u32 number, s64 given, struct packet *packet) {
    const struct link *link = &engine->links[number];
    struct hop hop = {given, packet->starts, link->free_at, packet->arrives, engine->cause, number};
    if (engine->series)
        note_sending(engine->series, number, hop.given, hop.starts, hop.left, link->waiting);
    if (engine->followed)
        packet->hop = note_hop(engine->followed, &hop, packet->bytes, packet->length);
}

/* Give a link a packet of `length` bytes: the bytes of `head`, then those of `body`. Returns the packet, or 0 if it is
 * lost. */
static struct packet *give(struct engine *engine, u32 number, u32 length, const u8 *head, u64 head_bytes, const u8 *body) {
    struct link *link = &engine->links[number];
    s64 now = engine->now + link->latency_ps;
    begin_sending(link, now);
    if (!link->up || (link->limit && link->waiting >= link->limit)) {
        *(link->up ? &link->dropped : &link->lost) += 1;
        return 0;
    }
    struct packet *packet = take_buffer(engine, length);
    u64 first = length < head_bytes ? length : head_bytes;
    memcpy(packet->bytes, head, first);
    memcpy(packet->bytes + first, body, length - first);
    packet->length = length, packet->next = 0, packet->hop = NONE, packet->passes = 0;
    packet->starts = link->free_at > now ? link->free_at : now;
    link->free_at = packet->starts + time_to_send(link, length);
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
    if (link->first)
        link->last->next = packet;
    else
        link->first = packet;
    link->last = packet;
    if (link->near && !link->untapped)
        link->untapped = packet;
    if (link->first == packet)
        add_event(engine, packet->arrives, number);
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
    if ((link->first = packet->next))
        postpone(engine, link->first->arrives);
    else
        remove_event(engine, 0);
    return packet;
}

/* ---- nodes ---- */

static void emit(void *context, u32 port, const u8 *bytes, u32 length) {
    struct engine *engine = context;
    const struct node *node = &engine->nodes[engine->node];
    u32 link = port < node->ports ? engine->link_at[node->first_port + port] : NONE;
    if (link != NONE) /* else it is lost, as in the kernel */
        give(engine, link, length, bytes, length, bytes);
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

/* Recirculate a packet `passes` times before the switch processes it; for 0 it is processed now. */
static void process(struct engine *engine, const struct packet *packet, u32 port, u32 passes, u32 link) {
    struct node *node = &engine->nodes[engine->node];
    if (!passes) {
        node->receive(node->self, engine->now, port, packet->bytes, packet->length, emit, engine);
        return;
    }
    struct packet *again = give(engine, link, packet->length, packet->bytes, packet->length, packet->bytes);
    if (again)
        again->passes = passes, again->port = port;
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
        process(engine, packet, link->to_port, again ? by->times : 0, again ? by->link : NONE);
    } else
        keep(engine, link->to_node, packet);
}

static void deliver(struct engine *engine, u32 number) {
    struct link *link = &engine->links[number];
    struct packet *packet = take_first(engine, number);
    if (link->up) {
        engine->node = link->to_node, engine->cause = packet->hop;
        if (packet->passes)
            process(engine, packet, packet->port, packet->passes - 1, number);
        else
            arrive(engine, link, packet);
        engine->cause = NONE;
    } else {
        link->lost++;
        if (packet->hop != NONE)
            hop_at(engine->followed, packet->hop)->arrives = LOST;
    }
    give_back(engine, packet);
}

/* ---- sources ---- */

/* Let the next source send. It waits while the queue before its link is full, like a blocking socket. */
static void send_from_source(struct engine *engine) {
    struct source *source = &engine->sources[engine->heap[0].who - engine->link_count];
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
    give(engine, source->link, length, bytes, length, bytes);
}

/* ---- the interface to Python ---- */

u32 record_sizes(u32 what) {
    const u32 sizes[] = {sizeof(struct link), sizeof(struct node), sizeof(struct source), sizeof(struct sample),
                         sizeof(struct series), sizeof(struct hop), sizeof(struct hops), sizeof(struct recirculation)};
    return sizes[what];
}

struct engine *engine_new(struct link *links, u32 link_count, struct node *nodes, const u32 *link_at, u32 arrival_bytes) {
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine || !(engine->heap = calloc((u64)link_count + 1, sizeof *engine->heap)))
        abort();
    engine->link_count = link_count;
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
        give(engine, links[i], lengths[i], heads->bytes + heads->stride * rows[i], heads->size,
             bodies->bytes + bodies->stride * rows[i]);
}

/* Give a packet to a link, now. */
void engine_give(struct engine *engine, u32 link, const u8 *bytes, u32 length) {
    give(engine, link, length, bytes, length, bytes);
}

/* Call `wake` whenever `*due` has come, after the packets that arrive at the same time; stop when `*halted` is set. */
void engine_attach(struct engine *engine, const s64 *due, const u32 *halted, void (*wake)(void *self, s64 now), void *self) {
    engine->due = due, engine->halted = halted, engine->wake = wake, engine->self = self;
}

/* Process all events up to and including `until`, or until the run halts or about `most` packets have arrived. */
void engine_run(struct engine *engine, s64 until, u64 most) {
    u64 last = engine->hops + most;
    while (engine->hops < last) {
        s64 next = engine->heap_length ? engine->heap[0].at : INT64_MAX, due = engine->due ? *engine->due : INT64_MAX;
        if (next > until && due > until) {
            engine->now = until;
            return;
        }
        engine->now = next <= due ? next : due;
        if (next > due)
            engine->wake(engine->self, due);
        else if (engine->heap[0].who < engine->link_count)
            deliver(engine, engine->heap[0].who);
        else
            send_from_source(engine);
        if (engine->halted && *engine->halted)
            return;
    }
}

/* The time of the next event; -1 if there is none. */
s64 engine_next(const struct engine *engine) { return engine->heap_length ? engine->heap[0].at : -1; }

/* Add a source, which sends its first frame when it is due; returns its number. */
u32 engine_add_source(struct engine *engine, const struct source *source) {
    u32 number = engine->source_count++;
    engine->sources = realloc(engine->sources, sizeof *source * engine->source_count);
    engine->heap = realloc(engine->heap, sizeof *engine->heap * (engine->link_count + engine->source_count));
    if (!engine->sources || !engine->heap)
        abort();
    engine->sources[number] = *source;
    add_event(engine, source->due, engine->link_count + number);
    return number;
}

u64 engine_source_left(const struct engine *engine, u32 number) { return engine->sources[number].left; }

/* Stop a source. */
void engine_stop_source(struct engine *engine, u32 number) {
    for (u32 at = 0; at < engine->heap_length; at++)
        if (engine->heap[at].who == engine->link_count + number)
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

s64 engine_now(const struct engine *engine) { return engine->now; }
u64 engine_hops(const struct engine *engine) { return engine->hops; }
const u8 *engine_inbox(const struct engine *engine, u64 *used) { return *used = engine->inbox_used, engine->inbox; }
void engine_empty_inbox(struct engine *engine) { engine->inbox_used = 0; }

static void free_all(struct packet *packet) {
    for (struct packet *next; packet; packet = next)
        next = packet->next, free(packet);
}

void engine_free(struct engine *engine) {
    for (u32 i = 0; i < engine->heap_length; i++)
        if (engine->heap[i].who < engine->link_count)
            free_all(engine->links[engine->heap[i].who].first);
    free_all(engine->free_small), free_all(engine->free_large);
    free(engine->inbox), free(engine->heap), free(engine->sources), free(engine);
}
