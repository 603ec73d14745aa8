// A checksum of bytes. Not for foes: it finds what a disk or a crash has changed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace fermata {

// Of bytes that come in parts: the same, however they are parted.
class Checksum {
   public:
    void add(std::span<const std::byte> bytes) {
        size_ += bytes.size();
        if (held_ > 0) {
            const std::size_t taken = std::min(bytes.size(), kBlock - held_);
            if (taken > 0) std::memcpy(block_.data() + held_, bytes.data(), taken);
            held_ += taken;
            bytes = bytes.subspan(taken);
            if (held_ < kBlock) return;
            mix_block(block_.data());
            held_ = 0;
        }
        for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock))
            mix_block(bytes.data());
        if (!bytes.empty()) std::memcpy(block_.data(), bytes.data(), bytes.size());
        held_ = bytes.size();
    }
    std::uint64_t value() const {
        std::uint64_t sum = mix(0, size_);
        for (std::size_t i = 0; i < held_; ++i)
            sum = mix(sum, static_cast<std::uint64_t>(block_[i]) + 1);
        for (const std::uint64_t lane : lanes_)
            sum = mix(sum, lane);
        return sum;
    }

   private:
    static constexpr std::size_t kLanes = 4;
    static constexpr std::size_t kBlock = kLanes * sizeof(std::uint64_t);

    static std::uint64_t mix(std::uint64_t lane, std::uint64_t word) {
        lane = (lane ^ word) * 0x9E3779B97F4A7C15u;
        return lane ^ (lane >> 32);
    }
    void mix_block(const std::byte* block) {
        std::array<std::uint64_t, kLanes> words;
        std::memcpy(words.data(), block, kBlock);
        for (std::size_t i = 0; i < kLanes; ++i)
            lanes_[i] = mix(lanes_[i], words[i]);
    }

    std::array<std::uint64_t, kLanes> lanes_ = {1, 2, 3, 4};
    std::array<std::byte, kBlock> block_ = {};
    std::size_t held_ = 0;  // bytes of the block that is not whole yet
    std::size_t size_ = 0;
};

inline std::uint64_t checksum_of(std::span<const std::byte> bytes) {
    Checksum sum;
    sum.add(bytes);
    return sum.value();
}

}  // namespace fermata
