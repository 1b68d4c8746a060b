/* A network in virtual time: links that send packets one after the other, and nodes that take them.
 *
 * Time is in whole picoseconds. Links and nodes are arrays that Python allocates and reads; `struct link` and `struct
 * node` have the layout of their records in engine.py. What happens at the same time happens in the order of the links'
 * numbers, so that a run is the same on every machine.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#define PS_PER_S 1000000000000ll
#define NONE 0xFFFFFFFFu
#define SMALL 448 /* bytes of a buffer for a short packet; others have room for LARGE */
#define LARGE 2048

#include "hops.h"
#include "series.h"

typedef void emit_fn(void *context, u32 port, const u8 *bytes, u32 length);
typedef void receive_fn(void *self, s64 now, u32 port, u8 *bytes, u32 length, emit_fn *emit, void *context);

struct packet {
    struct packet *next;
    s64 starts, arrives; /* when its first bit leaves, and when its last bit is at the other end */
    u32 length, room;
    u32 hop; /* its record, or NONE */
    u8 bytes[];
};

struct link {
    u64 rate_bps;
    s64 delay_ps;
    u32 to_node, to_port;
    u32 limit; /* how many packets may wait; 0: any number */
    u32 up;
    u64 sent_packets, sent_bytes, received_packets, received_bytes, dropped, lost;
    u32 waiting, most_waiting;
    s64 free_at; /* when all that was given to it has left */
    struct packet *first, *last, *starting; /* in flight or waiting, and the first of them that still waits */
};

struct node {
    receive_fn *receive; /* 0: a host, whose packets go to the inbox */
    void *self;
    u32 first_port, ports; /* its part of `link_at` */
};

struct engine {
    struct link *links;
    struct node *nodes;
    const u32 *link_at; /* by a node's first port and port: the link by which it sends there, or NONE */
    u32 *heap;          /* links that hold packets, by when the first one arrives */
    u32 heap_length;
    u32 node; /* which node is at work */
    s64 now;
    u64 hops;
    struct packet *free_small, *free_large;
    u8 *inbox;
    u64 inbox_used, inbox_room;
    u32 arrival_bytes; /* of a packet in the inbox */
    struct series *series; /* 0: nothing is noted */
    struct hops *followed; /* the same */
    u32 cause;             /* the hop whose arrival a node is at work on, or NONE */
};

/* What the inbox holds of a packet before its bytes. */
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

/* ---- which link is next ---- */

static int sooner(const struct engine *engine, u32 one, u32 other) {
    s64 a = engine->links[one].first->arrives, b = engine->links[other].first->arrives;
    return a < b || (a == b && one < other);
}

static void rise(struct engine *engine, u32 at) {
    u32 link = engine->heap[at];
    for (; at && sooner(engine, link, engine->heap[(at - 1) / 2]); at = (at - 1) / 2)
        engine->heap[at] = engine->heap[(at - 1) / 2];
    engine->heap[at] = link;
}

static void sink(struct engine *engine, u32 at) {
    u32 link = engine->heap[at], length = engine->heap_length;
    for (u32 child; (child = 2 * at + 1) < length; at = child) {
        child += child + 1 < length && sooner(engine, engine->heap[child + 1], engine->heap[child]);
        if (!sooner(engine, engine->heap[child], link))
            break;
        engine->heap[at] = engine->heap[child];
    }
    engine->heap[at] = link;
}

/* ---- links ---- */

static void begin_sending(struct link *link, s64 now) {
    for (; link->starting && link->starting->starts <= now; link->starting = link->starting->next)
        link->waiting--;
}

static s64 time_to_send(const struct link *link, u32 bytes) {
    unsigned __int128 bits = (unsigned __int128)bytes * 8 * PS_PER_S;
    return (s64)((bits + link->rate_bps - 1) / link->rate_bps);
}

static void observe(struct engine *engine, u32 number, struct packet *packet) {
    const struct link *link = &engine->links[number];
    struct hop hop = {engine->now, packet->starts, link->free_at, packet->arrives, engine->cause, number};
    if (engine->series)
        note_sending(engine->series, number, hop.given, hop.starts, hop.left, link->waiting);
    if (engine->followed)
        packet->hop = note_hop(engine->followed, &hop, packet->bytes, packet->length);
}

static void give(struct engine *engine, u32 number, const u8 *bytes, u32 length) {
    struct link *link = &engine->links[number];
    begin_sending(link, engine->now);
    if (!link->up || (link->limit && link->waiting >= link->limit)) {
        *(link->up ? &link->dropped : &link->lost) += 1;
        return;
    }
    struct packet *packet = take_buffer(engine, length);
    memcpy(packet->bytes, bytes, length);
    packet->length = length, packet->next = 0, packet->hop = NONE;
    packet->starts = link->free_at > engine->now ? link->free_at : engine->now;
    link->free_at = packet->starts + time_to_send(link, length);
    packet->arrives = link->free_at + link->delay_ps;
    if (packet->starts > engine->now) {
        if (!link->starting)
            link->starting = packet;
        if (++link->waiting > link->most_waiting)
            link->most_waiting = link->waiting;
    }
    if (engine->series || engine->followed)
        observe(engine, number, packet);
    link->sent_packets++, link->sent_bytes += length;
    if (link->first)
        link->last->next = packet;
    else
        link->first = packet;
    link->last = packet;
    if (link->first == packet) {
        engine->heap[engine->heap_length] = number;
        rise(engine, engine->heap_length++);
    }
}

static struct packet *take_first(struct engine *engine, u32 number) {
    struct link *link = &engine->links[number];
    struct packet *packet = link->first;
    begin_sending(link, engine->now);
    if ((link->first = packet->next)) {
        sink(engine, 0);
        return packet;
    }
    u32 moved = engine->heap[--engine->heap_length];
    if (engine->heap_length && moved != number) {
        engine->heap[0] = moved;
        sink(engine, 0);
    }
    return packet;
}

/* ---- nodes ---- */

static void emit(void *context, u32 port, const u8 *bytes, u32 length) {
    struct engine *engine = context;
    const struct node *node = &engine->nodes[engine->node];
    u32 link = port < node->ports ? engine->link_at[node->first_port + port] : NONE;
    if (link != NONE) /* else it is lost, as in the kernel */
        give(engine, link, bytes, length);
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

static void deliver(struct engine *engine, u32 number) {
    struct link *link = &engine->links[number];
    struct packet *packet = take_first(engine, number);
    if (link->up) {
        const struct node *node = &engine->nodes[link->to_node];
        link->received_packets++, link->received_bytes += packet->length, engine->hops++;
        engine->node = link->to_node, engine->cause = packet->hop;
        if (node->receive)
            node->receive(node->self, engine->now, link->to_port, packet->bytes, packet->length, emit, engine);
        else
            keep(engine, link->to_node, packet);
        engine->cause = NONE;
    } else {
        link->lost++;
        if (packet->hop != NONE)
            hop_at(engine->followed, packet->hop)->arrives = LOST;
    }
    give_back(engine, packet);
}

/* ---- what Python calls ---- */

u32 record_sizes(u32 what) {
    const u32 sizes[] = {sizeof(struct link), sizeof(struct node),   sizeof(struct sample),
                         sizeof(struct series), sizeof(struct hop), sizeof(struct hops)};
    return sizes[what];
}

struct engine *engine_new(struct link *links, u32 link_count, struct node *nodes, const u32 *link_at, u32 arrival_bytes) {
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine || !(engine->heap = calloc((u64)link_count + 1, sizeof(u32))))
        abort();
    engine->links = links, engine->nodes = nodes, engine->link_at = link_at, engine->arrival_bytes = arrival_bytes;
    engine->cause = NONE;
    return engine;
}

/* Note from now on what links do, and the hops of packets; 0: nothing of the kind. */
void engine_observe(struct engine *engine, struct series *series, struct hops *hops) {
    engine->series = series, engine->followed = hops;
}

/* Give `count` packets to links, now: of each the first `lengths` bytes; they begin every `stride` bytes. */
void engine_send(struct engine *engine, u32 count, const u32 *links, const u32 *lengths, const u8 *bytes, u32 stride) {
    for (u32 i = 0; i < count; i++)
        give(engine, links[i], bytes + (u64)stride * i, lengths[i]);
}

/* Let time pass up to and including `until`. */
void engine_run(struct engine *engine, s64 until) {
    while (engine->heap_length && engine->links[engine->heap[0]].first->arrives <= until) {
        engine->now = engine->links[engine->heap[0]].first->arrives;
        deliver(engine, engine->heap[0]);
    }
    engine->now = until;
}

/* When the next packet arrives anywhere; -1 if none is under way. */
s64 engine_next(const struct engine *engine) {
    return engine->heap_length ? engine->links[engine->heap[0]].first->arrives : -1;
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
        free_all(engine->links[engine->heap[i]].first);
    free_all(engine->free_small), free_all(engine->free_large);
    free(engine->inbox), free(engine->heap), free(engine);
}
