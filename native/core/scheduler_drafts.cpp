// Drafts: rows of tokens that a sequence may say next, decoded in the step of the row before them.
// Each is sampled in order as if it had come alone, so the tokens are those of a decode without
// drafts; the first that differs ends it, and the rows behind are cut from the cache.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "core/scheduler.h"

namespace fermata {

namespace {

// Tokens of an answer, for what reading its text is worth; where it may be shorter, those.
constexpr std::int32_t kUsualAnswer = 256;
// Of a sequence in a step, its draft included: attention gives the same bits for so many rows, and
// no more. There are several before a draft where a grammar forces tokens.
constexpr std::int32_t kMostRowsWithDraft = 16;

}  // namespace

// Steps that prefill have no drafts: what a row costs beside a prompt is not known.
void Scheduler::plan_drafts() {
    passes_.clear();
    right_by_model_ = 0;
    // Of a step that failed.
    if (draft_model_ != nullptr) draft_model_->take_spent();
    bool decodes_alone = true;
    for (const Share& share : shares_) {
        Sequence& sequence = *sequences_.at(share.id);
        sequence.proposal = {};
        sequence.said_by_model = 0;
        sequence.right_by_text = 0;
        const bool held = sequence.state == SequenceState::kHeld;
        decodes_alone = decodes_alone && !held && !sequence.prefilling();
    }
    if (config_.draft_limit == 0 || shares_.empty() || !decodes_alone) return;
    if (draft_model_ != nullptr && !draft_model_->is_measured()) return draft_model_->measure();
    for (const Share& share : shares_) {
        Sequence& sequence = *sequences_.at(share.id);
        const std::int32_t most = share.samples ? most_drafted(share) : 0;
        if (most > 0) sequence.proposal = propose(sequence, most);
    }
    if (draft_model_ != nullptr && room_for_drafts() > 0) ask_draft_model();
    std::vector<DraftGate::Share> wanted;
    for (const Share& share : shares_) {
        const Sequence& sequence = *sequences_.at(share.id);
        wanted.push_back({
            .slot = share.slot,
            .rows = share.count,
            .samples = share.samples,
            .chances = gate_.chances(sequence.drafts, sequence.proposal),
            .may_cost = may_cost(sequence),
        });
    }
    const auto chosen = gate_.choose(wanted, room_for_drafts());
    std::vector<SlotRows> batch, without_model, alone;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        Share& share = shares_[i];
        share.drafted = chosen[i];
        share.by_model = std::min(sequences_.at(share.id)->said_by_model, share.drafted);
        batch.push_back({share.slot, share.count + share.drafted});
        without_model.push_back({share.slot, share.count + share.drafted - share.by_model});
        alone.push_back({share.slot, share.count});
    }
    passes_ = split_into_passes(std::move(batch), shape_);
    passes_without_model_ = split_into_passes(std::move(without_model), shape_);
    passes_alone_ = split_into_passes(std::move(alone), shape_);
}

// The gate keeps an account of its own for a draft model.
double Scheduler::may_cost(const Sequence& sequence) {
    return sequence.said_by_model > 0 ? std::numeric_limits<double>::infinity()
                                      : sequence.draft_account.left();
}

// Rows that a step has left, and cells that nobody else has.
std::int32_t Scheduler::room_for_drafts() const {
    std::int32_t rows = 0, logit_rows = 0;
    for (const Share& share : shares_) {
        rows += share.count;
        logit_rows += share.samples ? 1 : 0;
    }
    std::int64_t room = config_.step_token_budget - rows;
    if (shape_.max_logit_rows > 0)
        room = std::min<std::int64_t>(room, shape_.max_logit_rows - logit_rows);
    if (shape_.layout == CacheLayout::kUnified)
        room = std::min(room, retention_.cells().free - rows);
    return static_cast<std::int32_t>(std::max<std::int64_t>(room, 0));
}

// How far the sequence could get in one step.
std::int32_t Scheduler::most_drafted(const Share& share) const {
    const Sequence& sequence = *sequences_.at(share.id);
    const bool closes =
        sequence.guide && (sequence.guide->deciding() || !sequence.guide->closing().empty());
    if (closes || sequence.pause_requested || sequence.suspected) return 0;
    return std::max(
        0, std::min({config_.draft_limit, kMostRowsWithDraft - share.count, remaining(sequence) - 1,
                     sequence.window - sequence.unacknowledged - 1}));
}

// What the sequence may go on with, by its own text: at most `most` tokens.
Draft Scheduler::propose(Sequence& sequence, std::int32_t most) {
    const auto known = static_cast<std::size_t>(sequence.memory.size());
    sequence.memory.append(std::span(sequence.tokens).subspan(known));
    Draft draft;
    for (Draft& other : sequence.memory.proposals(most))
        if (worth_of(sequence, other) > worth_of(sequence, draft)) draft = std::move(other);
    sequence.memory.follow(draft);
    // No row behind the end of a round is wanted.
    const auto end =
        std::ranges::find_if(draft.tokens, [this](Token token) { return backend_.is_end(token); });
    draft.tokens.erase(end, draft.tokens.end());
    if (sequence.guide) join_forced(sequence, draft, most);
    return draft;
}

// Sequences whose own text promises less than the draft model does are given a draft of it, where
// what it computes for that pays.
void Scheduler::ask_draft_model() {
    std::vector<DraftGate::Share> shares;
    std::size_t count = 0;
    for (const Share& share : shares_) {
        const Sequence& sequence = *sequences_.at(share.id);
        const auto most = static_cast<std::size_t>(most_drafted(share));
        const Draft of_model{.tokens = std::vector<Token>(most), .by_model = true};
        auto chances = gate_.chances(sequence.drafts, of_model);
        const bool asks =
            share.samples && DraftGate::worth(chances) > worth_of(sequence, sequence.proposal);
        if (!asks) chances.clear();
        count += chances.empty() ? 0 : 1;
        shares.push_back({share.slot, share.count, share.samples, std::move(chances)});
    }
    const auto asking = gate_.ask(shares, draft_model_->milliseconds_for(count));
    if (asking.tokens == 0) return;
    std::vector<const Share*> asked;
    std::vector<DraftModel::Reader> readers;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        if (shares[i].chances.empty()) continue;
        const Sequence& sequence = *sequences_.at(shares_[i].id);
        asked.push_back(&shares_[i]);
        readers.push_back({
            .slot = sequence.slot,
            .tokens = sequence.tokens,
            .most = std::min(asking.tokens, most_drafted(shares_[i])),
            .salt = sequence.salt,
            .worth = asking.saves * std::min(remaining(sequence), kUsualAnswer),
        });
    }
    auto answers = draft_model_->propose(readers);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        if (!answers[i].has_read) continue;
        gate_.answered();
        take_answer(*asked[i], {.tokens = std::move(answers[i].tokens), .by_model = true});
    }
}

// An answer of no use counts as one that was wrong: it took as long.
void Scheduler::take_answer(const Share& share, Draft draft) {
    Sequence& sequence = *sequences_.at(share.id);
    auto said = static_cast<std::int32_t>(draft.tokens.size());
    if (sequence.guide && said > 0) said = join_forced(sequence, draft, most_drafted(share));
    if (said == 0) {
        const Draft useless{.by_model = true};
        sequence.drafts.count(useless, 0, true);
        gate_.record().count(useless, 0, true);
    } else {
        sequence.proposal = std::move(draft);
        sequence.said_by_model = said;
    }
}

double Scheduler::worth_of(const Sequence& sequence, const Draft& draft) const {
    return DraftGate::worth(gate_.chances(sequence.drafts, draft));
}

// Of what was read before as much as the grammar accepts, and what it leaves no choice about then.
// Returns how many tokens it accepts.
std::int32_t Scheduler::join_forced(Sequence& sequence, Draft& draft, std::int32_t most) {
    draft.tokens.resize(sequence.guide->accepted(draft.tokens));
    const auto accepted = static_cast<std::int32_t>(draft.tokens.size());
    draft.row.resize(std::min(draft.row.size(), draft.tokens.size()));
    draft.forced_from = draft.tokens.size();
    const bool is_given = sequence.forced_tokens && sequence.top_logprobs < 0;
    if (accepted == 0 && is_given) return 0;
    for (const Token token : sequence.guide->forced_after(draft.tokens)) {
        if (static_cast<std::int32_t>(draft.tokens.size()) >= most) break;
        draft.tokens.push_back(token);
    }
    return accepted;
}

// Takes the drafted rows that came true. Returns how many: if any, the row of the last one is
// sampled next.
std::int32_t Scheduler::confirm_drafted(SequenceId id) {
    Sequence* const sequence = find(id);
    if (sequence == nullptr || sequence->state != SequenceState::kRunning) return 0;
    if (sequence->drafted.empty()) return 0;
    const auto said =
        std::span(sequence->tokens).subspan(static_cast<std::size_t>(sequence->resident));
    const auto differ = std::ranges::mismatch(said, sequence->drafted).in1;
    auto count = static_cast<std::int32_t>(differ - said.begin());
    // The last token of a sequence that may not be sampled now stays out of the cache.
    if (count == sequence->rows_left() && sequence->throttled()) count = std::max(0, count - 1);
    if (count > 0) {
        retention_.commit(sequence->slot, count);
        sequence->resident += count;
        sequence->resident_ever = std::max(sequence->resident_ever, sequence->resident);
        sequence->drafted.erase(sequence->drafted.begin(), sequence->drafted.begin() + count);
        totals_.accepted_rows += count;
        const std::int32_t of_model = std::min(sequence->said_by_model, count);
        sequence->said_by_model -= of_model;
        sequence->right_by_text += count - of_model;
        right_by_model_ += of_model;
    }
    if (count > 0 && sequence->rows_left() == 0) return count;
    cut_drafted(*sequence);
    return 0;
}

// Drafted rows that did not come true leave the cache.
void Scheduler::cut_drafted(Sequence& sequence) {
    if (sequence.drafted.empty()) return;
    sequence.drafted.clear();
    const std::int32_t computed = sequence.resident;
    sequence.resident = retention_.rewind(sequence.slot, computed);
    if (sequence.resident < computed)
        sequence.prefill_end = std::max(sequence.prefill_end, computed);
}

// Compares the proposal with what the sequence said, decoded or not.
void Scheduler::judge_proposal(SequenceId id) {
    Sequence* const sequence = find(id);
    if (sequence == nullptr || sequence->proposal.tokens.empty()) return;
    const auto known = std::min(sequence->memory.size(), sequence->size());
    const auto said = std::span(sequence->tokens).subspan(static_cast<std::size_t>(known));
    const auto [in_said, in_proposal] = std::ranges::mismatch(said, sequence->proposal.tokens);
    const auto right = static_cast<std::int32_t>(in_said - said.begin());
    const bool wrong = in_said != said.end() && in_proposal != sequence->proposal.tokens.end();
    sequence->drafts.count(sequence->proposal, right, wrong);
    gate_.record().count(sequence->proposal, right, wrong);
    if (said.size() == 1 && !sequence->proposal.by_model) sequence->draft_account.saw(right > 0);
}

// What the rows of the sequences' own texts took longer is shared by their number.
void Scheduler::charge_for_drafts() {
    std::int32_t tokens = 0, rows = 0;
    for (const Share& share : shares_) {
        tokens += share.samples ? 1 : 0;
        rows += share.drafted - share.by_model;
    }
    const double all = gate_.more_for(passes_without_model_, passes_alone_) * tokens /
                       gate_.expected(passes_alone_);
    for (const Share& share : shares_) {
        Sequence* const sequence = find(share.id);
        if (sequence == nullptr || !share.samples) continue;
        const std::int32_t own = share.drafted - share.by_model;
        sequence->draft_account.count(own > 0 ? all * own / rows : 0.0, sequence->right_by_text);
    }
}

void Scheduler::took(double milliseconds) {
    const double drafting = draft_model_ == nullptr ? 0.0 : draft_model_->take_spent();
    milliseconds -= drafting;
    gate_.took(passes_, milliseconds);
    if (drafting > 0.0 && !passes_.empty())
        gate_.asked(drafting + gate_.more_for(passes_, passes_without_model_), right_by_model_);
    if (!passes_.empty()) charge_for_drafts();
    passes_.clear();
    prefill_budget_.took(prefill_rows_, milliseconds);
}

}  // namespace fermata
