// What the model's last layer gave for each position of each slot, as long as the slot holds it:
// the input of its MTP layers, which read along later or never. Slots share the pages of what was
// copied, and states are saved with the cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/types.h"

namespace fermata {

class HiddenStates {
   public:
    HiddenStates(std::int32_t slot_count, std::int32_t width);

    // Numbers of a state. They are kept in two bytes each.
    std::int32_t width() const { return width_; }
    static std::int64_t bytes_for(std::int64_t positions, std::int32_t width) {
        return positions * width * std::int64_t{sizeof(std::uint16_t)};
    }

    struct Range {
        std::int32_t begin = 0;
        std::int32_t end = 0;
    };
    // The positions whose states are here; those before `begin` came from elsewhere than a decode.
    Range range(SlotId slot) const;
    // False: it is not here, `to` stays.
    bool read(SlotId slot, std::int32_t position, std::span<float> to) const;

    // At another position than the end of its range, the slot's range begins anew. Without memory
    // the state is lacking.
    void add(SlotId slot, std::int32_t position, std::span<const float> state);
    // The first `length` positions of `from` are those of `to`.
    void copy(SlotId from, SlotId to, std::int32_t length);
    // No positions from `length` on.
    void cut(SlotId slot, std::int32_t length);
    // The slot has so many positions now, whose states are not known.
    void lack(SlotId slot, std::int32_t length);

    // What is known of a slot, to be saved beside its cells.
    std::size_t saved_size(SlotId slot) const;
    void save(SlotId slot, std::span<std::byte> to) const;  // of saved_size()
    // Of what ends with them, the bytes that save() wrote; 0: that cannot be.
    std::size_t saved_size(std::span<const std::byte> end) const;
    // For a slot of so many positions again. Without memory, or if that is not what save() wrote,
    // it lacks them.
    void restore(SlotId slot, std::int32_t length, std::span<const std::byte> saved);

   private:
    static constexpr std::int32_t kPage = 64;  // positions
    using Page = std::vector<std::uint16_t>;
    struct Slot {
        Range range;
        std::vector<std::shared_ptr<Page>> pages;  // null where nothing is known
    };

    Slot& at(SlotId slot) { return slots_[static_cast<std::size_t>(slot)]; }
    const Slot& at(SlotId slot) const { return slots_[static_cast<std::size_t>(slot)]; }
    std::uint16_t* place(Slot& slot, std::int32_t position) const;
    const std::uint16_t* find(const Slot& slot, std::int32_t position) const;
    std::size_t state_bytes() const { return static_cast<std::size_t>(bytes_for(1, width_)); }

    std::int32_t width_;
    std::vector<Slot> slots_;
};

}  // namespace fermata
