/* BMv2's hash functions over the first `length` of `room` bytes; the constant `room` bounds the loops. */
#pragma once

WHOLE u8 hashed[HASHED_BYTES];

FUNCTION u32 crc_of_byte(u32 crc, u32 polynomial) {
    for (u32 bit = 0; bit < 8; bit++)
        crc = crc >> 1 ^ (polynomial & -(crc & 1));
    return crc;
}
static INLINE u64 crc_reflected(const u8 *bytes, u32 length, u32 room, u32 polynomial, u32 crc) {
    for (u32 i = 0; i < room && i < length; i++)
        crc = crc_of_byte(crc ^ bytes[i], polynomial);
    return crc;
}
static INLINE u64 crc16(const u8 *bytes, u32 length, u32 room) {
    return crc_reflected(bytes, length, room, 0xa001, 0);
}
static INLINE u64 crc32(const u8 *bytes, u32 length, u32 room) {
    return (u32)~crc_reflected(bytes, length, room, 0xedb88320, ~0u);
}

/* The lowest `bits` bits in the opposite order. */
static INLINE u32 bits_reversed(u32 word, u32 bits) {
    word = (word & 0x55555555) << 1 | (word >> 1 & 0x55555555);
    word = (word & 0x33333333) << 2 | (word >> 2 & 0x33333333);
    word = (word & 0x0f0f0f0f) << 4 | (word >> 4 & 0x0f0f0f0f);
    return __builtin_bswap32(word) >> (32 - bits);
}

/* A CRC with parameters from the control plane: `given` is a `struct crc`, see layout.py. */
#define CRC_CUSTOM(given, bytes, length, room, bits) \
    (crc_custom(bytes, length, room, (given)->polynomial, (given)->first, (given)->flip_bytes, (given)->flip_result, \
                bits) ^ (given)->last)
static INLINE u64 crc_custom(const u8 *bytes, u32 length, u32 room, u32 polynomial, u32 crc, u32 flip_bytes,
                             u32 flip_result, u32 bits) {
    for (u32 i = 0; i < room && i < length; i++)
        crc = crc_of_byte(crc ^ (flip_bytes ? bits_reversed(bytes[i], 8) : bytes[i]), polynomial);
    return flip_result ? bits_reversed(crc, bits) : crc;
}

/* Unlike the others, it takes the highest bit of each byte first. */
FUNCTION u32 crc_ccitt_of_byte(u32 crc, u32 byte) {
    crc ^= byte << 8;
    for (u32 bit = 0; bit < 8; bit++)
        crc = crc << 1 ^ (0x1021 & -(crc >> 15 & 1));
    return crc & 0xffff;
}
static INLINE u64 crc_ccitt(const u8 *bytes, u32 length, u32 room) {
    u32 crc = 0xffff;
    for (u32 i = 0; i < room && i < length; i++)
        crc = crc_ccitt_of_byte(crc, bytes[i]);
    return crc;
}

static INLINE u64 identity(const u8 *bytes, u32 length, u32 room) {
    u64 value = 0;
    for (u32 i = 0; i < room && i < 8 && i < length; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Exclusive or of 32-bit or 16-bit words; the last one is padded with zeros. */
static INLINE u64 xor32(const u8 *bytes, u32 length, u32 room) {
    u64 value = 0;
    for (u32 i = 0; i < room && i < length; i++)
        value ^= (u64)bytes[i] << 8 * (3 - i % 4);
    return value;
}
static INLINE u64 xor16(const u8 *bytes, u32 length, u32 room) {
    u64 value = 0;
    for (u32 i = 0; i < room && i < length; i++)
        value ^= (u64)bytes[i] << (i & 1 ? 0 : 8);
    return value;
}
static INLINE u64 sum16(const u8 *bytes, u32 length, u32 room) {
    u64 sum = 0;
    for (u32 i = 0; i < room && i < length; i++)
        sum += (u64)bytes[i] << (i & 1 ? 0 : 8);
    return sum;
}
static INLINE u64 folded(u64 sum) {
    for (u32 i = 0; i < 4; i++)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* `payload` is the sum of the bytes that follow; after an odd number of bytes, its words are shifted by one byte. */
static INLINE u64 csum16(const u8 *bytes, u32 length, u32 room, u64 payload) {
    payload = folded(payload);
    if (length & 1)
        payload = (payload & 0xff) << 8 | payload >> 8;
    return ~folded(sum16(bytes, length, room) + payload) & 0xffff;
}
