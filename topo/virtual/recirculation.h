/* Packets that pass a pipeline several times: between two passes they wait for the pipeline's recirculation port, a
 * link from the switch to itself. Included by engine.c; `struct recirculation` has the layout of its record in
 * engine.py.
 */

struct recirculation {
    const struct instruction *filter; /* accepts packets that can be recirculated */
    const u64 *numbers;               /* sorted: the masked numbers of packets that are recirculated */
    u64 mask;
    u32 count, number_at; /* `number_at`: the place of a packet's big-endian number of 64 bits */
    u32 link, times;      /* the link by which a packet comes in again, and how often */
};

static u64 number_in(const u8 *at) {
    u64 number = 0;
    for (u32 i = 0; i < 8; i++)
        number = number << 8 | at[i];
    return number;
}

static int is_recirculated(const struct recirculation *by, const u8 *bytes, u32 length) {
    if (!by || length < by->number_at + 8 || !accepts(by->filter, bytes, length))
        return 0;
    u64 number = number_in(bytes + by->number_at) & by->mask;
    u32 low = 0, high = by->count;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (by->numbers[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < by->count && by->numbers[low] == number;
}
