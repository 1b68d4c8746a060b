// What is said once for each of the 64 integers of a packet.
//
// EACH_VALUE(X) writes X(0) to X(63). The X are the header's fields, the registers that hold the
// sums, and the statements of the actions that store, load, swap and add one element.

#define EACH_VALUE(X) \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) \
    X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) \
    X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) \
    X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31) \
    X(32) X(33) X(34) X(35) X(36) X(37) X(38) X(39) \
    X(40) X(41) X(42) X(43) X(44) X(45) X(46) X(47) \
    X(48) X(49) X(50) X(51) X(52) X(53) X(54) X(55) \
    X(56) X(57) X(58) X(59) X(60) X(61) X(62) X(63)

#define VALUE_FIELD(i) bit<32> v##i;
#define VALUE_REGISTER(i) register<bit<32>>(SLOTS) sum##i;

#define VALUE_STORE(i) sum##i.write(meta.index, hdr.values.v##i);
#define VALUE_LOAD(i) sum##i.read(hdr.values.v##i, meta.index);
#define VALUE_SWAP(i) \
    sum##i.read(meta.before, meta.index); \
    sum##i.write(meta.index, hdr.values.v##i); \
    hdr.values.v##i = meta.before;

// Two's complement overflow: both operands have the sign that the sum does not have.
#define VALUE_ADD(i) \
    sum##i.read(meta.before, meta.index); \
    meta.after = meta.before + hdr.values.v##i; \
    meta.overflow = meta.overflow | ((meta.before ^ meta.after) & (hdr.values.v##i ^ meta.after)); \
    hdr.values.v##i = meta.after; \
    sum##i.write(meta.index, meta.after);

// What one packet with values has beside them and its headers: nothing.
#define HELD_BESIDE(X)
