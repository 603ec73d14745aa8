// Prefills a held sequence with the known beginning of its resume.
#include "core/scheduler.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace fermata {

namespace {

// Rows of one more slot may cost one more pass over the weights, so there must be enough of them.
constexpr std::int32_t kWorthAPass = 32;
// The next tokens of other sequences wait for these rows.
constexpr std::int32_t kMostBesideOthers = 128;
// Once a guess was wrong, those of its sequence risk at most this part of its rows: what made one
// wrong (a tool that takes back its output, a template that reads what is not known) does so again.
constexpr std::int32_t kRiskedPart = 20;

}  // namespace

void Scheduler::extend(ExtendRequest request) {
    Sequence* sequence = find(request.id);
    if (sequence == nullptr || sequence->state != SequenceState::kHeld) return;
    if (!sequence->extendable || shape_.fixed_chunk > 0) return;
    const bool keeps = request.keep_pending || !sequence->has_pending();
    const auto count = static_cast<std::int32_t>(request.tokens.size());
    const std::int32_t begin = sequence->size() - (keeps ? 0 : 1);
    if (begin + count >= shape_.cells_per_sequence) return;
    Extension next{.tokens = std::move(request.tokens), .keep_pending = keeps};
    keep_agreed(*sequence, next, begin + count);
    if (sequence->rows_guessed_wrong > 0) {
        const std::int32_t risk = sequence->size() / kRiskedPart - sequence->rows_guessed_wrong;
        const std::int32_t computed = sequence->resident - begin;
        next.tokens.resize(
            static_cast<std::size_t>(std::clamp(risk, std::max(computed, 0), count)));
    }
    sequence->extension = std::move(next);
    std::erase(extending_, sequence->id);
    if (sequence->slot != kNoSlot && sequence->rows_to_extend() > 0)
        extending_.push_back(sequence->id);
}

// Plans extensions with rows and cells that the step has left. Returns the number of rows.
std::int32_t Scheduler::plan_extensions(std::int32_t prefill_rows) {
    const bool alone = shares_.empty();
    if (!alone && decode_only_steps_ > 0) return 0;
    std::int32_t planned = 0;
    for (const Share& share : shares_)
        planned += share.count;
    std::int32_t room = config_.step_token_budget - planned;
    if (!alone)
        room = std::min(
            {room, kMostBesideOthers - prefill_rows, prefill_budget_.rows() - prefill_rows});
    std::int32_t extended = 0;
    for (const SequenceId id : extending_) {
        const Sequence& sequence = *sequences_.at(id);
        if (!alone && sequence.rows_to_extend() < kWorthAPass) continue;
        const std::int32_t count = std::min(sequence.rows_to_extend(), room);
        if (count <= 0 || !retention_.ensure_cells(planned + count)) break;
        // What comes may be something else.
        const bool first = sequence.resident == sequence.held_resident;
        if (first && retention_.keeps_forks() && !retention_.fork(sequence.slot)) continue;
        shares_.push_back({id, sequence.slot, count, false, 0});
        planned += count;
        room -= count;
        extended += count;
    }
    return extended;
}

// Keeps the cells of the extension that agree with the beginning of `next`, up to position `most`.
void Scheduler::keep_agreed(Sequence& sequence, const Extension& next, std::int32_t most) {
    const Extension& held = sequence.extension;
    std::int32_t right = sequence.size() - 1;
    if (held.keep_pending == next.keep_pending || held.tokens.empty()) {
        const auto differ = std::ranges::mismatch(held.tokens, next.tokens).in1;
        right =
            sequence.extension_begin() + static_cast<std::int32_t>(differ - held.tokens.begin());
    }
    const bool wrong = right < sequence.resident_ever;
    const std::int32_t before = sequence.resident;
    give_up_extension(sequence, std::max(std::min(right, most), sequence.held_resident));
    if (wrong) sequence.rows_guessed_wrong += before - sequence.resident;
}

// Removes the extension's cells from position `right` on.
void Scheduler::give_up_extension(Sequence& sequence, std::int32_t right) {
    if (right >= sequence.resident_ever) return;
    totals_.discarded_tokens += sequence.resident_ever - right;
    sequence.resident_ever = right;
    if (sequence.resident > right) sequence.resident = retention_.truncate(sequence.slot, right);
}

// Frees the cells of all extensions for other sequences. These holds are not extended again. false:
// there were none.
bool Scheduler::give_up_extensions() {
    bool any = false;
    for (const auto& [id, sequence] : sequences_) {
        if (sequence->extension.tokens.empty()) continue;
        if (!shape_.partial_truncate && !retention_.keeps_forks()) continue;
        any = any || sequence->resident > sequence->held_resident;
        give_up_extension(*sequence, sequence->held_resident);
        sequence->extension = {};
        sequence->extendable = false;
        std::erase(extending_, id);
    }
    return any;
}

// The next `count` rows of the extension were decoded.
void Scheduler::commit_extension(Sequence& sequence, std::int32_t count) {
    std::vector<Token> tokens;
    for (std::int32_t i = 0; i < count; ++i)
        tokens.push_back(sequence.token_at(sequence.resident + i));
    retention_.extend(sequence.slot, tokens);
    totals_.extended_tokens += count;
    if (sequence.rows_to_extend() == count) std::erase(extending_, sequence.id);
    Event& event = emit(EventKind::kExtended, sequence);
    event.prefill_done = std::max(0, sequence.resident + count - sequence.extension_begin());
    event.prefill_total = static_cast<std::int32_t>(sequence.extension.tokens.size());
}

// A hold ends without a resume: the caller asked for its extension, so that counts as resumed.
void Scheduler::count_extension(Sequence& sequence) {
    if (sequence.state != SequenceState::kHeld) return;
    const std::int32_t count = sequence.resident_ever - sequence.held_resident;
    sequence.usage.resumed_tokens += count;
    totals_.resumed_tokens += count;
    std::erase(extending_, sequence.id);
}

}  // namespace fermata
