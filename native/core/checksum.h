// A checksum of bytes. Not for foes: it finds what a disk or a crash has changed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace fermata {

inline std::uint64_t checksum_of(std::span<const std::byte> bytes) {
    constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15u;
    std::array<std::uint64_t, 4> lanes = {1, 2, 3, 4};
    const auto mix = [](std::uint64_t lane, std::uint64_t word) {
        lane = (lane ^ word) * kPrime;
        return lane ^ (lane >> 32);
    };
    const std::size_t size = bytes.size();
    for (; bytes.size() >= sizeof(lanes); bytes = bytes.subspan(sizeof(lanes))) {
        std::array<std::uint64_t, 4> words;
        std::memcpy(words.data(), bytes.data(), sizeof(words));
        for (std::size_t i = 0; i < lanes.size(); ++i)
            lanes[i] = mix(lanes[i], words[i]);
    }
    std::uint64_t sum = mix(0, size);
    for (const std::byte byte : bytes)
        sum = mix(sum, static_cast<std::uint64_t>(byte) + 1);
    for (const std::uint64_t lane : lanes)
        sum = mix(sum, lane);
    return sum;
}

}  // namespace fermata
