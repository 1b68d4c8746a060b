/* Packets that pass a pipeline several times: between two passes they wait for the pipeline's recirculation port, a link
 * from the switch to itself. Included by engine.c; `struct recirculation` has the layout of its record in
 * recirculation.py.
 */

struct recirculation {
    const struct instruction *filter; /* what may be recirculated at all */
    const u64 *numbers;               /* and of that, packets whose masked number is one of these, which are sorted */
    u64 mask;
    u32 count, number_at; /* `number_at`: where a packet has its big-endian number of 64 bits */
    u32 link, times;      /* by which link, and how often, it comes in again */
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
