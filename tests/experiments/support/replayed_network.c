/* Does again what `recorded_network.py` has recorded: reads a script from its standard input and writes, to its standard
 * output, every packet that comes to a host, the records of links without addresses, and the memory of all switches.
 *
 * Compiled with -DENGINE='"engine.c"', and linked with the generated C of the switches.
 */
#include ENGINE
#include <stdio.h>

enum { END, RUN, SEND };

struct table {
    u32 key_bytes, entry_bytes, count, slots;
    u8 *bytes;
};

struct switch_state {
    void *memory;
    struct table *tables;
};

void take_packet(void *self, s64 now, u32 port, u8 *bytes, u32 length, emit_fn *to, void *context);
int table_put(struct table *table, const void *key, const void *entry);

static void *take(u64 size) {
    void *found = aligned_alloc(64, (size + 64) & ~63ull);
    if (!found || fread(found, 1, size, stdin) != size)
        abort();
    return found;
}

static u32 number(void) {
    u32 found;
    if (fread(&found, sizeof found, 1, stdin) != 1)
        abort();
    return found;
}

static void read_table(struct table *table) {
    table->key_bytes = number(), table->entry_bytes = number();
    for (u32 pairs = number(); pairs--;) {
        u8 *key = take(table->key_bytes), *entry = take(table->entry_bytes);
        if (table_put(table, key, entry))
            abort();
    }
}

static u32 read_switch(struct node *nodes, struct switch_state *state) {
    struct node *node = &nodes[number()];
    u32 size = number(), tables = number();
    state->memory = take(size);
    state->tables = calloc(tables, sizeof *state->tables);
    for (u32 i = 0; i < tables; i++)
        read_table(&state->tables[i]);
    node->receive = take_packet, node->self = state;
    return size;
}

static void do_all(struct engine *engine) {
    for (u32 what; (what = number()) != END;) {
        if (what == RUN) {
            s64 *until = take(sizeof *until);
            engine_run(engine, *until, UINT64_MAX >> 1);
            continue;
        }
        u32 count = number(), stride = number();
        u32 *links = take(4ull * count), *lengths = take(4ull * count);
        struct rows frames = {take((u64)stride * count), stride, stride};
        s64 rows[count + 1];
        for (u32 i = 0; i < count; i++)
            rows[i] = i;
        engine_send(engine, count, links, lengths, rows, &frames, &frames);
    }
}

int main(void) {
    u32 links = number(), nodes = number(), places = number(), arrival_bytes = number(), switches = number();
    struct link *link = take(links * sizeof *link);
    struct node *node = take(nodes * sizeof *node);
    struct engine *engine = engine_new(link, links, node, take(4ull * places), arrival_bytes);
    struct switch_state states[switches];
    u32 size = 0;
    for (u32 i = 0; i < switches; i++)
        size = read_switch(node, &states[i]);
    do_all(engine);
    fwrite(engine->inbox, 1, engine->inbox_used, stdout);
    for (u32 i = 0; i < links; i++)
        link[i].first = link[i].last = link[i].starting = 0;
    fwrite(link, sizeof *link, links, stdout);
    for (u32 i = 0; i < switches; i++)
        fwrite(states[i].memory, 1, size, stdout);
    return 0;
}
