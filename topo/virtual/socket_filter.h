/* The filters of hosts: the part of classic BPF that the kit's socket filters use. Included by engine.c. */

struct instruction {
    u16 code;
    u8 if_true, if_false; /* how many lines a jump skips */
    u32 operand;
};

enum { LOAD_HALF = 0x28, LOAD_BYTE = 0x30, LOAD_LENGTH = 0x80, JUMP_EQUAL = 0x15, JUMP_ANY_BIT = 0x45, RETURN = 0x06 };

/* Whether a program accepts a packet. A packet that is too short for a load is not accepted; a program with an unknown
 * instruction accepts no packet. */
static int accepts(const struct instruction *line, const u8 *bytes, u32 length) {
    for (u32 accumulator = 0;; line++) {
        u32 operand = line->operand, size = line->code == LOAD_HALF ? 2 : line->code == LOAD_BYTE;
        if (size && (u64)operand + size > length)
            return 0;
        switch (line->code) {
        case LOAD_HALF: accumulator = bytes[operand] << 8 | bytes[operand + 1]; break;
        case LOAD_BYTE: accumulator = bytes[operand]; break;
        case LOAD_LENGTH: accumulator = length; break;
        case JUMP_EQUAL: line += accumulator == operand ? line->if_true : line->if_false; break;
        case JUMP_ANY_BIT: line += accumulator & operand ? line->if_true : line->if_false; break;
        case RETURN: return operand > 0;
        default: return 0;
        }
    }
}
