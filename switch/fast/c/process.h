/* The in-process side of runtime.h: calls pass packets in and out, and tables are hash maps of this file. */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The caller's time in nanoseconds; -1: the machine's. */
static s64 given_ns = -1;

static u64 clock_ns(void) {
    struct timespec now;
    if (given_ns >= 0)
        return given_ns;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* SplitMix64: each switch draws the same numbers in every run. */
static u64 random_word(u64 *state) {
    u64 word = *state += 0x9e3779b97f4a7c15ull;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ word >> 27) * 0x94d049bb133111ebull;
    return word ^ word >> 31;
}

/* The state of the present switch, an argument of `process`. All switches of a program share the code. Nothing else
 * points into it, so that the compiler may reorder its reads and the writes to `state`. */
#define DECLARE_MEMORY static struct memory *restrict own;
static struct table *tables;

/* ---- packets ---- */

struct packet {
    u8 *data, *end;
};

/* The function that receives the packets leaving the switch, and its own argument. */
typedef void emit_fn(void *context, u32 port, const u8 *bytes, u32 length);
static emit_fn *emit;
static void *emit_context;

#define PACKET struct packet

static INLINE u8 *packet_data(PACKET *packet) { return packet->data; }
static INLINE u8 *packet_end(PACKET *packet) { return packet->end; }
static INLINE u32 packet_length(PACKET *packet) { return (u32)(packet->end - packet->data); }

static INLINE void take_bytes(PACKET *packet, u32 from, u8 *to, u64 count) { memcpy(to, packet->data + from, count); }

static INLINE int drop(PACKET *packet) { return (void)packet, 0; }

/* In the port of a packet whose bytes are not used any more: the receiver may keep them, if they are those that it gave
 * (node.h of virtual time). */
#define LAST 0x80000000u

static INLINE void send_copy(PACKET *packet, u32 port) {
    emit(emit_context, port, packet->data, packet_length(packet));
}
static INLINE int send(PACKET *packet, u32 port) { return send_copy(packet, port | LAST), 0; }

#ifdef COPIES
static int replace_all(PACKET *packet, const u8 *bytes, u64 length) {
    static u8 bench[65536];
    memcpy(bench, bytes, length);
    packet->data = bench, packet->end = bench + length;
    return 0;
}

static INLINE int shorten(PACKET *packet, u32 most) {
    if (most < packet_length(packet))
        packet->end = packet->data + most;
    return 0;
}

static int send_short(PACKET *packet, u32 port, u32 most) {
    emit(emit_context, port, packet->data, most);
    return 0;
}
#endif

#ifdef HEAD_BYTES
WHOLE u8 head[HEAD_BYTES];

/* Replace the first `parsed` bytes of the packet by the first `length` bytes of `head`. */
static int replace_head(PACKET *packet, u32 parsed, u32 length) {
    static u8 *bytes;
    static u32 room;
    u32 payload = packet_length(packet) - parsed, size = length + payload;
    u8 *rebuilt = bytes;
    if (room < size && !(rebuilt = malloc(room = 2 * size)))
        abort();
    memmove(rebuilt + length, packet->data + parsed, payload);
    memcpy(rebuilt, head, length);
    if (rebuilt != bytes)
        free(bytes), bytes = rebuilt;
    packet->data = rebuilt, packet->end = rebuilt + size;
    return 0;
}

#ifdef HASHED_BYTES
/* The sum of all 16-bit words after the first `from` bytes. */
static u64 payload_sum(PACKET *packet, u32 from) {
    u32 length = packet_length(packet) - from;
    return sum16(packet->data + from, length, length);
}
#endif
#endif

/* ---- tables: open addressing, at most half full ---- */

struct table {
    u32 key_bytes, entry_bytes, count, slots;
    u8 *bytes; /* per slot: u64 used, key, entry */
};

/* The number by which Python finds a table, and the sizes of its entries. */
#define TABLE(symbol, key_type, entry_type, size) \
    enum { number_of_##symbol = __COUNTER__ }; \
    const u32 sizes_of_##symbol[] = {number_of_##symbol, sizeof(key_type), sizeof(entry_type)};
#define TABLE_OF(symbol) (&tables[number_of_##symbol])

static u64 hash_of(const u8 *key, u32 length) {
    u64 hash = 0xcbf29ce484222325ull;
    while (length--)
        hash = (hash ^ *key++) * 0x100000001b3ull;
    return hash ^ hash >> 32;
}

static u8 *slot_of(const struct table *table, const void *key) {
    u32 stride = 8 + (table->key_bytes + 7 & ~7u) + table->entry_bytes, slots = table->slots;
    for (u32 i = hash_of(key, table->key_bytes) & (slots - 1);; i = (i + 1) & (slots - 1)) {
        u8 *slot = table->bytes + (u64)stride * i;
        if (!*slot || !memcmp(slot + 8, key, table->key_bytes))
            return slot;
    }
}

static void *table_find(const struct table *table, const void *key) {
    if (!table->count)
        return 0;
    u8 *slot = slot_of(table, key);
    return *slot ? slot + 8 + (table->key_bytes + 7 & ~7u) : 0;
}

static void table_insert(struct table *table, const void *key, const void *entry) {
    u8 *slot = slot_of(table, key);
    table->count += !*slot;
    *slot = 1;
    memcpy(slot + 8, key, table->key_bytes);
    memcpy(slot + 8 + (table->key_bytes + 7 & ~7u), entry, table->entry_bytes);
}

/* Returns 0, or -1 if memory is exhausted. */
int table_put(struct table *table, const void *key, const void *entry) {
    if (table->count * 2 >= table->slots) {
        u32 head = 8 + (table->key_bytes + 7 & ~7u), stride = head + table->entry_bytes;
        struct table larger = *table;
        larger.slots = table->slots ? table->slots * 2 : 16;
        larger.count = 0;
        larger.bytes = calloc(larger.slots, stride);
        if (!larger.bytes)
            return -1;
        for (u8 *slot = table->bytes; slot < table->bytes + (u64)stride * table->slots; slot += stride)
            if (*slot)
                table_insert(&larger, slot + 8, slot + head);
        free(table->bytes);
        *table = larger;
    }
    table_insert(table, key, entry);
    return 0;
}

static u8 *next_slot(const struct table *table, u8 *slot, u32 stride) {
    u8 *next = slot + stride;
    return next < table->bytes + (u64)stride * table->slots ? next : table->bytes;
}

/* Whether the entry at `slot` can move to the empty slot `hole` in front of it: its own first slot is not between. */
static int can_move(const struct table *table, const u8 *hole, const u8 *slot, u32 stride) {
    u32 mask = table->slots - 1, first = hash_of(slot + 8, table->key_bytes) & mask;
    u32 at = (slot - table->bytes) / stride, to = (hole - table->bytes) / stride;
    return ((at - first) & mask) >= ((at - to) & mask);
}

/* Move entries after the removed one up, so that no slot between an entry and its first slot is empty. */
void table_remove(struct table *table, const void *key) {
    u32 stride = 8 + (table->key_bytes + 7 & ~7u) + table->entry_bytes;
    u8 *hole = table->count ? slot_of(table, key) : 0;
    if (!hole || !*hole)
        return;
    for (u8 *slot = next_slot(table, hole, stride); *slot; slot = next_slot(table, slot, stride))
        if (can_move(table, hole, slot, stride))
            memcpy(hole, slot, stride), hole = slot;
    *hole = 0;
    table->count--;
}

void table_free(struct table *table) { free(table->bytes); }

/* ---- functions that Python calls ---- */

struct switch_state {
    struct memory *memory;
    struct table *tables;
};

/* The packets that have left the switch, each as u32 port, u32 length and its bytes. */
struct record {
    u8 *bytes;
    u32 used, room, lost;
};

static void write_record(void *context, u32 port, const u8 *bytes, u32 length) {
    struct record *record = context;
    u32 head[2] = {port & ~LAST, length};
    if (record->room - record->used < sizeof head + length) {
        record->lost++;
        return;
    }
    memcpy(record->bytes + record->used, head, sizeof head);
    memcpy(record->bytes + record->used + sizeof head, bytes, length);
    record->used += sizeof head + length;
}

/* `process`: process `count` packets that lie one after the other in `bytes`, at `now_ns` (-1: the machine's time).
 * Leaving packets are written to `out`; returns the number of bytes used, or -1 if `room` was too small.
 * `take_packet`: process one packet at a time in picoseconds, and pass leaving packets to `to`. */
#define ENTRY(parsed_bytes) \
    HOT s64 process(const struct switch_state *self, s64 now_ns, u32 count, const u32 *ports, const u32 *lengths, \
                u8 *bytes, u8 *out, u32 room) { \
        struct record record = {out, 0, room, 0}; \
        own = self->memory, tables = self->tables, given_ns = now_ns, emit = write_record, emit_context = &record; \
        for (u32 i = 0; i < count; bytes += lengths[i++]) { \
            struct packet packet = {bytes, bytes + lengths[i]}; \
            receive(&packet, ports[i]); \
        } \
        return record.lost ? -1 : record.used; \
    } \
    HOT void take_packet(const struct switch_state *self, s64 now_ps, u32 port, u8 *bytes, u32 length, emit_fn *to, \
                     void *context) { \
        struct packet packet = {bytes, bytes + length}; \
        own = self->memory, tables = self->tables, given_ns = now_ps / 1000, emit = to, emit_context = context; \
        receive(&packet, port); \
    }
