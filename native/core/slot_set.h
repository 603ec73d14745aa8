// A set of slots and of what has left them, as bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/types.h"

namespace fermata {

// llama.cpp's LLAMA_MAX_SEQ.
inline constexpr std::int32_t kMaxSlots = 256;
// What has left its slot and is still known (see KvRetention) has ids behind those of the slots.
inline constexpr std::int32_t kMaxLeft = 768;
// Forks have ids behind those.
inline constexpr std::int32_t kMaxForks = 256;

class SlotSet {
   public:
    void add(SlotId slot) { words_[word(slot)] |= bit(slot); }
    void remove(SlotId slot) { words_[word(slot)] &= ~bit(slot); }
    bool contains(SlotId slot) const { return (words_[word(slot)] & bit(slot)) != 0; }
    bool empty() const { return *this == SlotSet{}; }

    bool is_only(SlotId slot) const { return *this == SlotSet{}.with(slot); }

    // The lowest slot; kNoSlot if empty.
    SlotId first() const {
        for (std::size_t i = 0; i < words_.size(); ++i)
            if (words_[i] != 0) return static_cast<SlotId>(i * 64) + std::countr_zero(words_[i]);
        return kNoSlot;
    }

    SlotSet with(SlotId slot) const {
        SlotSet set = *this;
        set.add(slot);
        return set;
    }

    SlotSet without(const SlotSet& other) const {
        SlotSet set = *this;
        for (std::size_t i = 0; i < words_.size(); ++i)
            set.words_[i] &= ~other.words_[i];
        return set;
    }

    // Groups of consecutive ids: {0, 1, 4} has two.
    int runs() const {
        int runs = 0;
        std::uint64_t carry = 0;  // the highest bit of the word before
        for (const std::uint64_t bits : words_) {
            runs += std::popcount(bits & ~((bits << 1) | carry));
            carry = bits >> 63;
        }
        return runs;
    }

    // Ascending.
    template <typename Visit>
    void for_each(Visit&& visit) const {
        for (std::size_t i = 0; i < words_.size(); ++i)
            for (std::uint64_t bits = words_[i]; bits != 0; bits &= bits - 1)
                visit(static_cast<SlotId>(i * 64) + std::countr_zero(bits));
    }

    bool operator==(const SlotSet&) const = default;

   private:
    static std::size_t word(SlotId slot) { return static_cast<std::size_t>(slot) / 64; }
    static std::uint64_t bit(SlotId slot) { return std::uint64_t{1} << (slot % 64); }

    std::array<std::uint64_t, (kMaxSlots + kMaxLeft + kMaxForks) / 64> words_{};
};

}  // namespace fermata
