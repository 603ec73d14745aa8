// What moves between slots, and between slots and host memory.
#include <algorithm>
#include <exception>

#include "llama-memory.h"
#include "llama.h"
#include "llama/llama_backend.h"
#include "llama/llama_batch.h"
#include "llama/log.h"
#include "llama/paged_state.h"

namespace fermata {

namespace {

// The parts of a slot's state: all of it, or what is overwritten as it grows, which is the window
// of sliding-window layers and the state of recurrent ones.
constexpr llama_state_seq_flags kWhole = LLAMA_STATE_SEQ_FLAGS_NONE;
constexpr llama_state_seq_flags kOverwritten = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;

}  // namespace

bool LlamaBackend::copy_prefix(SlotId from, SlotId to, std::int32_t length) {
    if (!contains(from) || !contains(to) || from == to) {
        last_error_ = "A copy needs two slots that exist.";
        return false;
    }
    if (lengths_[static_cast<std::size_t>(to)] != 0) clear(to);
    const std::int32_t whole = lengths_[static_cast<std::size_t>(from)];
    if (length <= 0 || length > whole) {
        last_error_ = "A copy of more than the slot holds.";
        return false;
    }
    if (length < whole && !shape_.partial_truncate) {
        last_error_ = "The model cannot copy a part of a slot.";
        return false;
    }
    const bool done = shape_.layout == CacheLayout::kStreams ? copy_in_streams(from, to, length)
                                                             : copy_in_pool(from, to, length);
    if (!done) clear(to);
    if (done && hidden_states_ != nullptr) hidden_states_->copy(from, to, length);
    return done;
}

bool LlamaBackend::copy_in_streams(SlotId from, SlotId to, std::int32_t length) {
    if (shape_.partial_truncate && model_->shape().sliding_window > 0) {
        // A partial range aborts in this layout: all of it, then without its end.
        llama_memory_seq_cp(memory_, from, to, -1, -1);
        lengths_[static_cast<std::size_t>(to)] = lengths_[static_cast<std::size_t>(from)];
        return truncate(to, length);
    }
    if (!shape_.partial_truncate) {
        const SavedCells saved = save(from);
        return !saved.empty() && restore(to, saved);
    }
    StatePieces pieces;
    if (!note_pieces(from, pieces)) return false;
    PiecesReader reader(pieces);
    const std::int32_t whole = lengths_[static_cast<std::size_t>(from)];
    if (!read_from(reader, to, whole)) return false;
    lengths_[static_cast<std::size_t>(to)] = whole;
    return truncate(to, length);
}

bool LlamaBackend::copy_in_pool(SlotId from, SlotId to, std::int32_t length) {
    const bool whole = length == lengths_[static_cast<std::size_t>(from)];
    llama_memory_seq_cp(memory_, from, to, whole ? -1 : 0, whole ? -1 : length);
    lengths_[static_cast<std::size_t>(to)] = length;
    const bool shares = model_->shape().sliding_window == 0 || shares_windows();
    if (shares && !undoes_states()) return llama_memory_seq_pos_max(memory_, to) == length - 1;
    // Cells of a window that two slots share are never free again while both stay; and a copied
    // state is the last one of the slot, whichever it was taken back to.
    const SavedCells window = fork(from);
    return !window.empty() && cut_back(to, window);
}

bool LlamaBackend::truncate(SlotId slot, std::int32_t length) {
    if (!contains(slot)) return false;
    std::int32_t& resident = lengths_[static_cast<std::size_t>(slot)];
    if (length >= resident) return true;
    if (length <= 0) {
        clear(slot);
        return true;
    }
    if (!can_cut(slot, length) || !llama_memory_seq_rm(memory_, slot, length, -1)) return false;
    resident = length;
    undoable_[static_cast<std::size_t>(slot)] = 0;
    if (hidden_states_ != nullptr) hidden_states_->cut(slot, length);
    return true;
}

// A sliding-window cache reports success even when the cells it needs have been overwritten.
bool LlamaBackend::can_cut(SlotId slot, std::int32_t length) const {
    const auto at = static_cast<std::size_t>(slot);
    if (is_recurrent() && lengths_[at] - length > undoable_[at]) return false;
    const std::int32_t window = model_->shape().sliding_window;
    return window == 0 || llama_memory_seq_pos_min(memory_, slot) <= std::max(0, length - window);
}

// The pool is too small for a window of each slot: windows have as many cells as the other layers,
// and take no more of them only as long as slots that share positions share their windows too. So
// there are no forks.
bool LlamaBackend::shares_windows() const {
    const std::int64_t windows =
        std::int64_t{model_->shape().sliding_window} * shape_.slot_count + shape_.micro_batch_rows;
    return shape_.layout == CacheLayout::kUnified && model_->shape().sliding_window > 0 &&
           windows > shape_.cells_total;
}

std::size_t LlamaBackend::fork_size(SlotId slot) {
    return shape_.partial_truncate || shares_windows() ? 0 : state_size(slot, kOverwritten);
}

SavedCells LlamaBackend::fork(SlotId slot) {
    return fork_size(slot) == 0 ? SavedCells() : save_state(slot, kOverwritten);
}

bool LlamaBackend::cut_back(SlotId slot, const SavedCells& fork) {
    if (!contains(slot) || fork.empty()) return false;
    std::int32_t& resident = lengths_[static_cast<std::size_t>(slot)];
    const bool holds_it = resident >= fork.length();
    if ((holds_it || shape_.forks_stand_alone) && read_state(slot, fork, kOverwritten) &&
        llama_memory_seq_rm(memory_, slot, fork.length(), -1)) {
        resident = fork.length();
        undoable_[static_cast<std::size_t>(slot)] = 0;
        if (hidden_states_ != nullptr && holds_it) hidden_states_->cut(slot, fork.length());
        if (hidden_states_ != nullptr && !holds_it) hidden_states_->lack(slot, fork.length());
        return true;
    }
    clear(slot);
    return false;
}

// What cuts a slot anywhere needs the positions behind its window too, which a state lacks.
std::size_t LlamaBackend::saved_size(SlotId slot) {
    if (!shape_.partial_truncate) {
        const std::size_t size = state_size(slot, kWhole);
        const bool has_more = size > 0 && hidden_states_ != nullptr;
        return size + (has_more ? hidden_states_->saved_size(slot) : 0);
    }
    StatePieces pieces;
    return note_pages(slot, pieces).total();
}

SavedCells LlamaBackend::save(SlotId slot) {
    return save_beside(slot, {}, 0);
}

SavedCells LlamaBackend::save_beside(SlotId slot, const SavedCells& like, std::int32_t common) {
    if (!shape_.partial_truncate) return save_state(slot, kWhole);
    StatePieces pieces;
    const PagedSize size = note_pages(slot, pieces);
    if (size.total() == 0) return {};
    try {
        SavedCells saved = pieces.copy(size, like, common);
        if (hidden_states_ != nullptr)
            hidden_states_->save(slot, saved.page(0).last(hidden_states_->saved_size(slot)));
        return saved;
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
        return {};
    }
}

// A size of 0: the slot cannot be saved, or holds nothing.
PagedSize LlamaBackend::note_pages(SlotId slot, StatePieces& pieces) {
    if (!note_pieces(slot, pieces)) return {};
    try {
        const std::size_t states = hidden_states_ != nullptr ? hidden_states_->saved_size(slot) : 0;
        const PagedSize size = pieces.measure(lengths_[static_cast<std::size_t>(slot)], states);
        if (size.total() == 0) last_error_ = "The slot could not be saved.";
        return size;
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
        return {};
    }
}

// false: the slot cannot be saved, or holds nothing.
bool LlamaBackend::note_pieces(SlotId slot, StatePieces& pieces) {
    const bool lacks = model_->shape().sliding_window > 0;
    if (lacks || !contains(slot) || lengths_[static_cast<std::size_t>(slot)] == 0) return false;
    try {
        llama_synchronize(context_.get());
        memory_->state_write(pieces, slot, kWhole);
        return true;
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
        return false;
    }
}

bool LlamaBackend::restore(SlotId slot, const SavedCells& saved) {
    if (!contains(slot) || saved.empty()) return false;
    clear(slot);
    if (shape_.partial_truncate ? read_pages(slot, saved) : read_state(slot, saved, kWhole)) {
        lengths_[static_cast<std::size_t>(slot)] = saved.length();
        return true;
    }
    clear(slot);
    return false;
}

std::size_t LlamaBackend::state_size(SlotId slot, std::uint32_t parts) {
    if (!contains(slot) || lengths_[static_cast<std::size_t>(slot)] == 0) return 0;
    try {
        return llama_state_seq_get_size_ext(context_.get(), slot, parts);
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
        return 0;
    }
}

SavedCells LlamaBackend::save_state(SlotId slot, std::uint32_t parts) {
    const std::size_t size = state_size(slot, parts);
    if (size == 0) return {};
    try {
        const bool has_more = parts == kWhole && hidden_states_ != nullptr;
        const std::size_t more = has_more ? hidden_states_->saved_size(slot) : 0;
        SavedCells saved(size + more, lengths_[static_cast<std::size_t>(slot)]);
        auto* bytes = reinterpret_cast<std::uint8_t*>(saved.page(0).data());
        if (has_more) hidden_states_->save(slot, saved.page(0).subspan(size));
        if (llama_state_seq_get_data_ext(context_.get(), bytes, size, slot, parts) == size)
            return saved;
        last_error_ = "The slot could not be saved.";
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
    }
    return {};
}

// false: what the slot holds then is not known.
bool LlamaBackend::read_state(SlotId slot, const SavedCells& saved, std::uint32_t parts) {
    const LogCapture log;
    const std::span<const std::byte> all = saved.page(0);
    const bool has_more = parts == kWhole && hidden_states_ != nullptr;
    const std::size_t size = all.size() - (has_more ? hidden_states_->saved_size(all) : 0);
    std::size_t read = 0;
    try {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(all.data());
        read = llama_state_seq_set_data_ext(context_.get(), bytes, size, slot, parts);
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
    }
    if (read == size && llama_memory_seq_pos_max(memory_, slot) == saved.length() - 1) {
        if (has_more) hidden_states_->restore(slot, saved.length(), all.subspan(size));
        return true;
    }
    if (last_error_.empty()) last_error_ = log.errors_or("The slot could not be restored.");
    return false;
}

// The same of what save_beside() made.
bool LlamaBackend::read_pages(SlotId slot, const SavedCells& saved) {
    try {
        StateReader reader(saved);
        if (!read_from(reader, slot, saved.length())) return false;
        if (hidden_states_ != nullptr)
            hidden_states_->restore(slot, saved.length(), reader.take_rest());
        if (reader.at_end()) return true;
        last_error_ = "The state does not add up.";
        return false;
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
        return false;
    }
}

// The same from a reader, for so many positions.
bool LlamaBackend::read_from(llama_io_read_i& reader, SlotId slot, std::int32_t length) {
    const LogCapture log;
    try {
        llama_synchronize(context_.get());
        memory_->state_read(reader, slot, kWhole);
    } catch (const std::exception& failure) {
        last_error_ = failure.what();
        return false;
    }
    if (llama_memory_seq_pos_max(memory_, slot) == length - 1) return true;
    last_error_ = log.errors_or("The slot could not be restored.");
    return false;
}

void LlamaBackend::clear(SlotId slot) {
    llama_memory_seq_rm(memory_, slot, -1, -1);
    lengths_[static_cast<std::size_t>(slot)] = 0;
    undoable_[static_cast<std::size_t>(slot)] = 0;
    if (hidden_states_ != nullptr) hidden_states_->lack(slot, 0);
}

}  // namespace fermata
