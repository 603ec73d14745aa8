// What moves between slots, and between slots and host memory.
#include <algorithm>
#include <exception>

#include "llama.h"
#include "llama/llama_backend.h"
#include "llama/llama_batch.h"
#include "llama/log.h"

namespace fermata {

void LlamaBackend::copy_prefix(SlotId from, SlotId to, std::int32_t length) {
    if (!contains(from) || !contains(to) || from == to) {
        last_error_ = "A copy needs two slots that exist.";
        return;
    }
    if (lengths_[static_cast<std::size_t>(to)] != 0) clear(to);
    const std::int32_t whole = lengths_[static_cast<std::size_t>(from)];
    length = std::clamp(length, 0, whole);
    if (length == 0) return;
    if (length < whole && !shape_.partial_truncate) {
        last_error_ = "The model cannot copy a part of a slot.";
        return;
    }
    if (shape_.layout == CacheLayout::kStreams) {
        if (copy_through_host(from, to, length)) return;
        copying_[static_cast<std::size_t>(from)] = copying_[static_cast<std::size_t>(to)] = true;
        // A partial range aborts in this layout: all of it, then without its end.
        llama_memory_seq_cp(memory_, from, to, -1, -1);
        if (length < whole) llama_memory_seq_rm(memory_, to, length, -1);
    } else {
        llama_memory_seq_cp(memory_, from, to, length < whole ? 0 : -1,
                            length < whole ? length : -1);
    }
    lengths_[static_cast<std::size_t>(to)] = length;
    if (!has_prefix(to, length)) {
        last_error_ = "The copy is incomplete.";
        clear(to);
    }
}

bool LlamaBackend::truncate(SlotId slot, std::int32_t length) {
    if (!contains(slot)) return false;
    std::int32_t& resident = lengths_[static_cast<std::size_t>(slot)];
    if (length >= resident) return true;
    if (length <= 0) {
        clear(slot);
        return true;
    }
    if (llama_memory_seq_rm(memory_, slot, length, -1) && has_prefix(slot, length)) {
        resident = length;
        return true;
    }
    clear(slot);
    return false;
}

// false: nothing was done.
bool LlamaBackend::copy_through_host(SlotId from, SlotId to, std::int32_t length) {
    if (!shape_.cuts_restored || saved_size(from) == 0 || is_copying(to)) return false;
    const SavedCells saved = save(from);
    return !saved.empty() && restore(to, saved) && truncate(to, length);
}

std::size_t LlamaBackend::saved_size(SlotId slot) {
    if (!contains(slot) || is_copying(slot) || lengths_[static_cast<std::size_t>(slot)] == 0)
        return 0;
    try {
        return llama_state_seq_get_size(context_.get(), slot);
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
        return 0;
    }
}

SavedCells LlamaBackend::save(SlotId slot) {
    const std::size_t size = saved_size(slot);
    if (size == 0) return {};
    try {
        SavedCells saved(size, lengths_[static_cast<std::size_t>(slot)]);
        auto* bytes = reinterpret_cast<std::uint8_t*>(saved.bytes().data());
        if (llama_state_seq_get_data(context_.get(), bytes, size, slot) == size) return saved;
        last_error_ = "The slot could not be saved.";
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
    }
    return {};
}

bool LlamaBackend::restore(SlotId slot, const SavedCells& saved) {
    if (!contains(slot) || saved.empty()) return false;
    if (is_copying(slot)) {
        last_error_ = "The slot is being copied.";
        return false;
    }
    clear(slot);
    const LogCapture log;
    std::size_t read = 0;
    try {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(saved.bytes().data());
        read = llama_state_seq_set_data(context_.get(), bytes, saved.size(), slot);
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
    }
    if (read == saved.size() && llama_memory_seq_pos_max(memory_, slot) == saved.length() - 1) {
        lengths_[static_cast<std::size_t>(slot)] = saved.length();
        return true;
    }
    if (last_error_.empty()) last_error_ = log.errors_or("The slot could not be restored.");
    clear(slot);
    return false;
}

void LlamaBackend::clear(SlotId slot) {
    llama_memory_seq_rm(memory_, slot, -1, -1);
    lengths_[static_cast<std::size_t>(slot)] = 0;
}

// A sliding-window cache reports success even when the cells it needs have been overwritten.
bool LlamaBackend::has_prefix(SlotId slot, std::int32_t length) const {
    if (llama_memory_seq_pos_max(memory_, slot) != length - 1) return false;
    const std::int32_t window = model_->shape().sliding_window;
    if (window == 0 || model_->info().is_recurrent) return true;
    return llama_memory_seq_pos_min(memory_, slot) <= std::max(0, length - window);
}

}  // namespace fermata
