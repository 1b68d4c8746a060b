/* A process's side of runtime.h: packets go in and come out by calls, tables are hash maps of this file. */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <time.h>

static u64 clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

#define MEMORY

/* ---- packets ---- */

struct packet {
    u8 *data, *end;
};

/* What has left the switch: u32 port, u32 length, and the bytes, again and again. */
static struct {
    u8 *bytes;
    u32 used, room, lost;
} leaving;

#define PACKET struct packet

static INLINE u8 *packet_data(PACKET *packet) { return packet->data; }
static INLINE u8 *packet_end(PACKET *packet) { return packet->end; }
static INLINE u32 packet_length(PACKET *packet) { return (u32)(packet->end - packet->data); }

static INLINE void take_bytes(PACKET *packet, u32 from, u8 *to, u64 count) { memcpy(to, packet->data + from, count); }

static INLINE int drop(PACKET *packet) { return (void)packet, 0; }

static void send_copy(PACKET *packet, u32 port) {
    u32 head[2] = {port, packet_length(packet)};
    if (leaving.room - leaving.used < sizeof head + head[1]) {
        leaving.lost++;
        return;
    }
    memcpy(leaving.bytes + leaving.used, head, sizeof head);
    memcpy(leaving.bytes + leaving.used + sizeof head, packet->data, head[1]);
    leaving.used += sizeof head + head[1];
}
static INLINE int send(PACKET *packet, u32 port) { return send_copy(packet, port), 0; }

#ifdef HEAD_BYTES
WHOLE u8 head[HEAD_BYTES];

/* The first `parsed` bytes of the packet become the first `length` bytes of `head`. */
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
/* The sum of all 16-bit words behind the first `from` bytes. */
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

#define TABLE(symbol, key_type, entry_type, size) struct table symbol = {sizeof(key_type), sizeof(entry_type), 0, 0, 0};

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

/* Returns 0, or -1 without memory. */
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

/* Process `count` packets that stand one after the other in `bytes`. What leaves is written to `out`; returns
 * how many bytes of it are used, or -1 if `room` was too small. */
#define ENTRY(parsed_bytes) \
    s64 process(u32 count, const u32 *ports, const u32 *lengths, u8 *bytes, u8 *out, u32 room) { \
        leaving.bytes = out, leaving.room = room, leaving.used = leaving.lost = 0; \
        for (u32 i = 0; i < count; bytes += lengths[i++]) { \
            struct packet packet = {bytes, bytes + lengths[i]}; \
            receive(&packet, ports[i]); \
        } \
        return leaving.lost ? -1 : leaving.used; \
    }
