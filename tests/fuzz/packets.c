/* Packets from libFuzzer through the generated C of a program, each in memory of its own, so that ASAN sees every read
 * and write beyond it. PROGRAM is the C file; SIZES the sizes of its hash tables; STATE a file with what the switch
 * holds at first: its memory, then for each entry the place of its table in SIZES, the key, the entry. */
#include PROGRAM

#include <stdint.h>
#include <stdio.h>

#define MAX_PACKET 2047

/* Of each table: its number, and the bytes of its keys and entries. */
static const u32 *const sizes[] = {SIZES 0};
static struct table hash_tables[sizeof sizes / sizeof *sizes];
static struct memory memory;
static u8 initial[sizeof memory], out[1 << 20];
static const struct switch_state self = {&memory, hash_tables};

static void require(int fine, const char *what) {
    if (!fine) {
        fprintf(stderr, "%s: %s\n", STATE, what);
        exit(1);
    }
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    FILE *file = fopen(STATE, "rb");
    u32 place;
    (void)count, (void)arguments;
    require(file && fread(initial, sizeof initial, 1, file) == 1, "no memory in it");
    for (const u32 *const *each = sizes; *each; each++)
        hash_tables[**each].key_bytes = (*each)[1], hash_tables[**each].entry_bytes = (*each)[2];
    while (fread(&place, sizeof place, 1, file) == 1) {
        struct table *table = &hash_tables[*sizes[place]];
        u8 *key = malloc(table->key_bytes), *entry = malloc(table->entry_bytes);
        require(fread(key, table->key_bytes, 1, file) == 1 && fread(entry, table->entry_bytes, 1, file) == 1, "cut off");
        require(!table_put(table, key, entry), "no memory for it");
        free(key), free(entry);
    }
    return fclose(file);
}

/* Port, length (16 bits) and bytes, again and again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    memcpy(&memory, initial, sizeof memory);
    while (size >= 3) {
        u32 port = data[0] % 9, length = (data[1] | data[2] << 8) & MAX_PACKET;
        data += 3, size -= 3;
        if (length > size)
            length = size;
        u8 *packet = malloc(length);
        memcpy(packet, data, length);
        process(&self, -1, 1, &port, &length, packet, out, sizeof out);
        free(packet);
        data += length, size -= length;
    }
    return 0;
}
