/* Table lookup for each kind of table: `find_<table>` or `search_<table>` returns the matching entry or null. */
#pragma once

/* ---- hashed: an array in front of each hash table, see table_stores.py ---- */

static INLINE u32 place_of(const u64 *words, u32 count, u32 bits) {
    u64 place = 0;
    for (u32 i = 0; i < count; i++)
        place = (place ^ words[i]) * 0x9e3779b97f4a7c15ull;
    return place >> (64 - bits);
}
static INLINE int same_words(const u64 *one, const u64 *other, u32 count) {
    u64 difference = 0;
    for (u32 i = 0; i < count; i++)
        difference |= one[i] ^ other[i];
    return !difference;
}

#define FIND(symbol, bits) \
    static INLINE const struct entry_##symbol *find_##symbol(const struct key_##symbol *key) { \
        const struct front_##symbol *front = &own->front_##symbol[place_of(key->words, sizeof *key / 8, bits)]; \
        if (front->filled && same_words(front->key.words, key->words, sizeof *key / 8)) \
            return &front->entry; \
        return front->behind ? table_find(TABLE_OF(symbol), key) : 0; \
    }

/* ---- direct: an array indexed by the key; each place has an entry, and room for its replacement ---- */

#define FIND_DIRECT(symbol, length) \
    static INLINE const struct entry_##symbol *find_##symbol(u64 index) { \
        const struct entry_##symbol *entry = 0; \
        UNKNOWN(index); \
        if (index < length) { \
            BELOW(index, length); \
            entry = &own->symbol[index].copies[0]; \
            if (!entry->present) \
                entry = entry[1].present ? entry + 1 : 0; \
        } \
        return entry; \
    }

/* ---- listed: the first of `places` places whose rule matches; `matches_<table>` compares a rule with the key ---- */

#define LIST_BLOCK 64 /* places searched by one call */
#define GO_ON (1ull << 32) /* the search continues at the place in the low bits */

#define SEARCH_LIST(symbol, first, places, most_entries) \
    FUNCTION u64 block_##symbol(u64 place) { \
        for (u32 i = 0; i < LIST_BLOCK; i++, place++) { \
            if (place >= places) \
                return places; \
            CHECKED(place); \
            if (!own->symbol[place].entry.present) \
                return places; \
            if (matches_##symbol(&own->symbol[place].rule)) \
                return place; \
        } \
        return GO_ON | place; \
    } \
    static INLINE const struct entry_##symbol *search_##symbol(void) { \
        u64 place = GO_ON | own->first[0].place; \
        for (u32 i = 0; i < most_entries && place & GO_ON; i += LIST_BLOCK) \
            place = block_##symbol((u32)place); \
        if (place >= places) \
            return 0; \
        CHECKED(place); \
        return &own->symbol[place].entry; \
    }

/* ---- by longest prefix: each length in use links to the next shorter one; `prefix_<table>` searches one length ---- */

#define SEARCH_PREFIXES(symbol, lengths, bits) \
    FUNCTION u32 longest_##symbol(void) { \
        u32 link = own->lengths[bits + 1].next; \
        for (u32 i = 0; i <= bits; i++) { \
            u32 length = link - 1; \
            if (length > bits) \
                return 0; \
            CHECKED(length); \
            if (prefix_##symbol(length)) \
                return link; \
            link = own->lengths[length].next; \
        } \
        return 0; \
    } \
    static INLINE const struct entry_##symbol *search_##symbol(void) { \
        u32 link = longest_##symbol(); \
        return link ? prefix_##symbol(link - 1) : 0; \
    }

/* ---- statements after a hit ---- */

#define COUNT_PACKET(cell) (cell.packets += 1, cell.bytes += state.length)

#define GROUP 0xffffffffu /* the action number of an entry with a group of members, as in table_layout.py */

/* For an entry with a group, choose a member by the hash; `otherwise` follows if the group is empty. */
#define CHOOSE_MEMBER(entry, hash, members, room, otherwise) \
    if (entry && entry->action == GROUP) { \
        if (!entry->given.group.count) \
            otherwise \
        u64 place = (u32)hash % entry->given.group.count; \
        place += entry->given.group.first; \
        if (place >= room) \
            otherwise \
        CHECKED(place); \
        entry = &own->members[place]; \
    }
