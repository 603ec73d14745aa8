#include "llama/hidden_states.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "ggml.h"

namespace fermata {

HiddenStates::HiddenStates(std::int32_t slot_count, std::int32_t width)
    : width_(width), slots_(static_cast<std::size_t>(slot_count)) {}

HiddenStates::Range HiddenStates::range(SlotId slot) const {
    return at(slot).range;
}

bool HiddenStates::read(SlotId slot, std::int32_t position, std::span<float> to) const {
    const Range known = range(slot);
    if (position < known.begin || position >= known.end) return false;
    ggml_fp16_to_fp32_row(find(at(slot), position), to.data(), width_);
    return true;
}

const std::uint16_t* HiddenStates::find(const Slot& slot, std::int32_t position) const {
    const Page& page = *slot.pages[static_cast<std::size_t>(position / kPage)];
    return page.data() + std::ptrdiff_t{position % kPage} * width_;
}

void HiddenStates::add(SlotId slot, std::int32_t position, std::span<const float> state) {
    Slot& into = at(slot);
    if (position != into.range.end) lack(slot, position);
    try {
        ggml_fp32_to_fp16_row(state.data(), place(into, position), width_);
        into.range.end = position + 1;
    } catch (const std::bad_alloc&) {
        lack(slot, position + 1);
    }
}

// In a page of this slot alone.
std::uint16_t* HiddenStates::place(Slot& slot, std::int32_t position) const {
    const auto index = static_cast<std::size_t>(position / kPage);
    if (slot.pages.size() <= index) slot.pages.resize(index + 1);
    std::shared_ptr<Page>& page = slot.pages[index];
    if (page == nullptr) {
        page = std::make_shared<Page>(static_cast<std::size_t>(kPage) *
                                      static_cast<std::size_t>(width_));
    } else if (page.use_count() > 1) {
        page = std::make_shared<Page>(*page);
    }
    return page->data() + std::ptrdiff_t{position % kPage} * width_;
}

void HiddenStates::copy(SlotId from, SlotId to, std::int32_t length) {
    try {
        at(to) = at(from);
        cut(to, length);
    } catch (const std::bad_alloc&) {
        lack(to, length);
    }
}

void HiddenStates::cut(SlotId slot, std::int32_t length) {
    auto& [range, pages] = at(slot);
    range.end = std::min(range.end, length);
    range.begin = std::min(range.begin, range.end);
    const auto kept = static_cast<std::size_t>((range.end + kPage - 1) / kPage);
    if (pages.size() > kept) pages.resize(kept);
}

void HiddenStates::lack(SlotId slot, std::int32_t length) {
    at(slot) = {.range = {length, length}, .pages = {}};
}

// The states, and how many.
std::size_t HiddenStates::saved_size(SlotId slot) const {
    const auto [begin, end] = range(slot);
    return static_cast<std::size_t>(end - begin) * state_bytes() + sizeof(std::int32_t);
}

void HiddenStates::save(SlotId slot, std::span<std::byte> to) const {
    const auto [begin, end] = range(slot);
    std::byte* next = to.data();
    for (std::int32_t position = begin; position < end; ++position, next += state_bytes())
        std::memcpy(next, find(at(slot), position), state_bytes());
    const std::int32_t count = end - begin;
    std::memcpy(next, &count, sizeof(count));
}

std::size_t HiddenStates::saved_size(std::span<const std::byte> end) const {
    std::int32_t count = 0;
    if (end.size() < sizeof(count)) return 0;
    std::memcpy(&count, end.last(sizeof(count)).data(), sizeof(count));
    if (count < 0) return 0;
    const std::size_t size = static_cast<std::size_t>(count) * state_bytes() + sizeof(count);
    return size <= end.size() ? size : 0;
}

void HiddenStates::restore(SlotId slot, std::int32_t length, std::span<const std::byte> saved) {
    const auto count = static_cast<std::int32_t>(saved.size() / state_bytes());
    if (saved_size(saved) != saved.size() || count > length) return lack(slot, length);
    Slot& into = at(slot);
    lack(slot, length - count);
    try {
        for (; into.range.end < length; ++into.range.end) {
            std::memcpy(place(into, into.range.end), saved.data(), state_bytes());
            saved = saved.subspan(state_bytes());
        }
    } catch (const std::bad_alloc&) {
        lack(slot, length);
    }
}

}  // namespace fermata
