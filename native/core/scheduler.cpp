// One step: chooses sequences and rows, decodes them in one call, samples one token each.
#include "core/scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/micro_batches.h"

namespace fermata {

namespace {

// A step with this many prefill rows starts no further prompt: one pass over the weights then has
// enough rows, and a finished prompt's first token need not wait for other prompts.
constexpr std::int32_t kEnoughPrefillRows = 128;

// Steps that only decode, after a step with this many prefill rows or more than the budget's. They
// spread sequences whose tools end together, so a later resume has less work in front of it.
constexpr std::int32_t kDecodeOnlySteps = 2;

// What a row of a prompt is taken to take before that was measured, in milliseconds.
constexpr double kUnknownRowMs = 1.0;

// Rows of prompts in a step whose log-probabilities are told: each has a vector of logits.
constexpr std::int32_t kPromptRows = 64;

}  // namespace

Scheduler::Scheduler(SchedulerConfig config, Backend& backend, MaskRunner* masks,
                     SequenceFiles* files, DraftModel* draft_model)
    : config_(config),
      backend_(backend),
      masks_(masks),
      draft_model_(draft_model),
      shape_(backend.shape()),
      retention_(backend, config.ram_limit, config.left_limit, files, config.disk_limit),
      gate_(shape_),
      prefill_budget_(config.target_itl_ms, config.elastic_target) {
    config_.parallel = std::clamp(config_.parallel, 1, shape_.slot_count);
    config_.step_token_budget = std::clamp(config_.step_token_budget, 1, shape_.max_rows);
    if (!shape_.partial_truncate)
        config_.draft_limit = std::min(config_.draft_limit, shape_.undo_rows);
    const bool changes_bits = !shape_.keeps_bits && !config_.drafts_may_change_bits;
    if (shape_.fixed_chunk > 0 || changes_bits) config_.draft_limit = 0;
}

bool Scheduler::step(Milliseconds now) {
    now_ = now;
    retention_.attend_files(now);
    expire_leases(now);
    admit(now);
    const bool gave = give_forced(now);
    plan_batch();
    retention_.back_up(rows_.empty() ? std::numeric_limits<std::int64_t>::max() : kMovedInAStep);
    if (rows_.empty()) return decide(now) || gave;
    decode();
    sample(now);
    return true;
}

std::vector<Sequence*> Scheduler::running_with_rows(bool reading) const {
    std::vector<Sequence*> found;
    for (const SequenceId id : running_) {
        Sequence* sequence = sequences_.at(id).get();
        if (sequence->reads() == reading && sequence->rows_ready() > 0) {
            found.push_back(sequence);
        }
    }
    return found;
}

// First the prompt that would have been read first if each had been alone since it came: a short
// one does not wait for a long one, and a long one lets pass only what came before it should have
// been done.
std::vector<Sequence*> Scheduler::prompts_in_order() const {
    const double row_ms = prefill_budget_.row_ms() > 0.0 ? prefill_budget_.row_ms() : kUnknownRowMs;
    const auto alone_until = [row_ms](const Sequence* sequence) {
        return static_cast<double>(sequence->waits_since) + row_ms * sequence->rows_left();
    };
    std::vector<Sequence*> prompts = running_with_rows(true);
    std::ranges::stable_sort(prompts, {}, alone_until);
    return prompts;
}

void Scheduler::plan_batch() {
    rows_.clear();
    shares_.clear();
    if (shape_.fixed_chunk > 0) {
        plan_one();
    } else {
        plan_together();
    }
    std::sort(shares_.begin(), shares_.end(),
              [](const Share& a, const Share& b) { return a.slot < b.slot; });
    plan_drafts();
    for (Share& share : shares_) {
        const Sequence& sequence = *sequences_.at(share.id);
        for (std::int32_t i = 0; i < share.count; ++i) {
            const std::int32_t position = sequence.resident + i;
            rows_.push_back(
                {sequence.token_at(position), position, share.slot, sequence.tells_row(position)});
        }
        share.last_row = rows_.size() - 1;
        rows_.back().wants_logits = rows_.back().wants_logits || share.samples;
        for (std::int32_t i = 0; i < share.drafted; ++i) {
            rows_.push_back({sequence.proposal.tokens[static_cast<std::size_t>(i)],
                             sequence.resident + share.count + i, share.slot, true});
        }
    }
}

// Rows of the sequence that has waited longest: a chunk if it can be filled and one more token
// follows, else one row. Rows that were computed one by one are computed again with their chunk.
void Scheduler::plan_one() {
    Sequence* next = nullptr;
    for (const SequenceId id : running_) {
        Sequence& sequence = *sequences_.at(id);
        if (sequence.rows_ready() <= 0) continue;
        if (next == nullptr || sequence.last_step < next->last_step) next = &sequence;
    }
    if (next == nullptr) return;
    next->last_step = totals_.steps + 1;
    const bool fills = next->in_chunks + shape_.fixed_chunk < next->size();
    if (fills && next->resident > next->in_chunks)
        next->resident = next->in_chunks = retention_.rewind(next->slot, next->in_chunks);
    const std::int32_t count = fills ? shape_.fixed_chunk : 1;
    shares_.push_back({next->id, next->slot, count, count == next->rows_left(), 0});
}

// A sequence whose rows must be decoded alone; nullptr: none.
Sequence* Scheduler::suspected_with_rows() const {
    for (const SequenceId id : running_) {
        Sequence* sequence = sequences_.at(id).get();
        if (sequence->suspected && sequence->rows_ready() > 0) return sequence;
    }
    return nullptr;
}

// How many rows of a step may have logits beside those that are sampled.
std::int32_t Scheduler::most_told_rows() const {
    if (shape_.max_logit_rows == 0) return kPromptRows;
    // More than `parallel` run when readers that had stopped read on.
    const auto sampled = std::max(config_.parallel, static_cast<std::int32_t>(running_.size()));
    return std::clamp(shape_.max_logit_rows - sampled, 1, kPromptRows);
}

void Scheduler::plan_together() {
    std::int32_t budget = config_.step_token_budget;
    std::int32_t decode_rows = 0;
    std::int32_t prefill_rows = 0;
    std::int32_t prefill_limit = budget;  // lowered where that many rows have no cells
    std::int32_t told_rows = 0;           // that may still have logits to tell of
    const auto take = [&](Sequence& sequence) {
        std::int32_t count = std::min({sequence.rows_ready(), sequence.rows_to_mark(), budget});
        if (sequence.tells_prompt()) {
            count = std::min(count, told_rows);
            told_rows -= count;
        }
        if (count > 0) {
            shares_.push_back(
                {sequence.id, sequence.slot, count, count == sequence.rows_left(), 0});
            budget -= count;
        }
    };
    // Preemption changes who runs: plan again until the planned rows have cells.
    while (true) {
        shares_.clear();
        budget = config_.step_token_budget;
        told_rows = most_told_rows();
        Sequence* const alone = suspected_with_rows();
        if (alone != nullptr) take(*alone);
        for (Sequence* sequence : running_with_rows(false)) {
            if (alone == nullptr) take(*sequence);
        }
        decode_rows = config_.step_token_budget - budget;
        budget = std::min(budget, prefill_limit);
        const auto prompts = prompts_in_order();
        const std::int32_t rest = prompts.empty() ? 0 : prompts.front()->rows_left();
        if (!shares_.empty())
            budget = std::min(budget, prefill_budget_.rows_for(rest <= budget ? rest : 0));
        const std::int32_t left = budget;
        if (alone == nullptr && (shares_.empty() || decode_only_steps_ == 0)) {
            for (Sequence* sequence : prompts) {
                if (left - budget >= kEnoughPrefillRows) break;
                take(*sequence);
            }
        }
        prefill_rows = left - budget;
        if (retention_.ensure_cells(decode_rows + prefill_rows)) break;
        if (!give_up_extensions() && !fit_prefill(decode_rows, prefill_rows, prefill_limit))
            make_room();
    }
    if (suspected_with_rows() != nullptr) return;
    prefill_rows += plan_extensions(prefill_rows);
    if (prefill_rows >= kEnoughPrefillRows || prefill_rows > prefill_budget_.rows()) {
        decode_only_steps_ = kDecodeOnlySteps;
    } else if (decode_only_steps_ > 0) {
        --decode_only_steps_;
    }
}

// Lowers `limit` to the prefill rows that the cells left by holds have room for. false: too few.
bool Scheduler::fit_prefill(std::int32_t decode_rows, std::int32_t prefill_rows,
                            std::int32_t& limit) const {
    const CellCounts cells = retention_.cells();
    const std::int64_t room = cells.free + cells.retained - decode_rows;
    if (room < PrefillBudget::kLeast || room >= prefill_rows) return false;
    limit = static_cast<std::int32_t>(room);
    return true;
}

// Takes the cells of a sequence whose reader has stopped, of a hold, or of a running sequence. The
// last running one fails.
void Scheduler::make_room() {
    if (preempt_unread() || preempt_held()) return;
    Sequence& youngest = *sequences_.at(running_.back());
    if (running_.size() == 1) {
        fail(youngest, FailCode::kOutOfCells, "the KV cache has no cells left for this sequence");
    } else {
        preempt(youngest);
        waiting_.push_front(youngest.id);
    }
}

void Scheduler::decode() {
    StepReport report;
    report.micro_batches = count_micro_batches(rows_, shape_);
    const std::int64_t copies_before = totals_.copies;
    totals_.copies = retention_.copies();
    report.copies = static_cast<std::int32_t>(totals_.copies - copies_before);

    const DecodeStatus status = decode_beside_masks();
    if (status == DecodeStatus::kInterrupted) return shares_.clear();
    if (status == DecodeStatus::kFailed && shares_.size() > 1) return suspect_all();
    if (status != DecodeStatus::kOk) return fail_all_in_batch(status);
    for (const Share& share : shares_)
        commit(share, report);
    totals_.steps += 1;
    totals_.micro_batches += report.micro_batches;
    totals_.prefilled_tokens += report.prefill_rows;
    prefill_rows_ = report.prefill_rows;
    out_.steps.push_back(report);
}

// The share's rows are in the cache.
void Scheduler::commit(const Share& share, StepReport& report) {
    Sequence& sequence = *sequences_.at(share.id);
    const std::int32_t end = sequence.resident + share.count;
    const bool held = sequence.state == SequenceState::kHeld;
    const std::int32_t prefilled =
        held ? share.count : std::clamp(sequence.prefill_end - sequence.resident, 0, share.count);
    const std::int32_t recomputed =
        std::clamp(sequence.resident_ever - sequence.resident, 0, prefilled);
    if (held) {
        commit_extension(sequence, share.count);
    } else {
        retention_.commit(share.slot, share.count);
    }
    sequence.resident = end;
    if (!held && std::ranges::binary_search(sequence.marks, end)) retention_.fork(share.slot);
    const auto& proposed = sequence.proposal.tokens;
    sequence.drafted.assign(proposed.begin(), proposed.begin() + share.drafted);
    sequence.suspected = sequence.suspected && sequence.rows_left() > 0;
    if (share.count == shape_.fixed_chunk) sequence.in_chunks = end;
    // Rows that were computed once more with their chunk.
    const bool again = shape_.fixed_chunk > 0 && end <= sequence.resident_ever;
    sequence.resident_ever = std::max(sequence.resident_ever, end);
    sequence.usage.prefilled_tokens += prefilled;
    sequence.usage.recomputed_tokens += recomputed;
    totals_.recomputed_tokens += recomputed;
    totals_.drafted_rows += share.drafted;
    report.prefill_rows += prefilled;
    report.decode_rows += share.count - prefilled;
    if (prefilled > 0 && !held && !again) {
        Event& event = emit(EventKind::kProgress, sequence);
        event.prefill_done = end - sequence.round_begin;
        event.prefill_total = sequence.prefill_end - sequence.round_begin;
    }
}

void Scheduler::fail_all_in_batch(DecodeStatus status) {
    const FailCode code =
        status == DecodeStatus::kNoCells ? FailCode::kOutOfCells : FailCode::kDecodeFailed;
    for (const Share& share : std::exchange(shares_, {}))
        fail(*sequences_.at(share.id), code, "the backend could not decode the batch");
}

// A batch of several sequences failed and spoiled their slots. Each sequence is computed again
// alone, so only the one at fault fails.
void Scheduler::suspect_all() {
    for (const Share& share : std::exchange(shares_, {})) {
        Sequence& sequence = *sequences_.at(share.id);
        sequence.suspected = true;
        const bool held = sequence.state == SequenceState::kHeld;
        preempt(sequence);
        if (!held) waiting_.push_front(sequence.id);
    }
}

// The masks depend only on known tokens, so they are computed while the backend decodes.
DecodeStatus Scheduler::decode_beside_masks() {
    guides_.clear();
    for (const Share& share : shares_) {
        Sequence& sequence = *sequences_.at(share.id);
        if (share.samples && sequence.guide && !sequence.guide->deciding())
            guides_.push_back(&*sequence.guide);
    }
    if (masks_ == nullptr || guides_.empty()) return backend_.decode(rows_);
    masks_->start(guides_);
    const DecodeStatus status = backend_.decode(rows_);
    masks_->finish();
    return status;
}

}  // namespace fermata
