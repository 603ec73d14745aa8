#include "core/draft_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/logit_view.h"

namespace fermata {

namespace {

// A text's beginning is looked for in other slots if that may save so many rows.
constexpr std::int32_t kWorthCopying = 32;
// A row of fewer is dearer, and of more as dear.
constexpr std::size_t kTellingRows = 32;
constexpr double kWeightOfNew = 0.1;

}  // namespace

DraftModel::DraftModel(std::unique_ptr<Backend> backend, std::int32_t vocabulary_size, Clock clock)
    : backend_(std::move(backend)),
      shape_(backend_->shape()),
      vocabulary_size_(static_cast<std::size_t>(vocabulary_size)),
      clock_(std::move(clock)),
      texts_(static_cast<std::size_t>(shape_.slot_count)) {}

void DraftModel::Average::add(double seen) {
    count += 1;
    value += std::max(kWeightOfNew, 1.0 / count) * (seen - value);
}

double DraftModel::milliseconds_to_read(std::int32_t rows) const {
    return read_row_.value * rows;
}

// As the next larger number, else the next smaller one.
double DraftModel::milliseconds_for(std::size_t sequences) const {
    if (rounds_.empty()) return 0.0;
    const auto found = rounds_.lower_bound(sequences);
    return found == rounds_.end() ? std::prev(found)->second.value : found->second.value;
}

double DraftModel::take_spent() {
    return std::exchange(spent_, 0.0);
}

// Of the reader's tokens but the last one, whose logits are wanted.
std::int32_t DraftModel::shared(SlotId slot, const Reader& reader) const {
    const auto& [tokens, salt] = texts_[static_cast<std::size_t>(slot)];
    if (salt != reader.salt) return 0;
    const auto known = reader.tokens.first(reader.tokens.size() - 1);
    return static_cast<std::int32_t>(std::ranges::mismatch(tokens, known).in1 - tokens.begin());
}

DraftModel::Source DraftModel::source_of(const Reader& reader) const {
    Source best{reader.slot, shared(reader.slot, reader)};
    const auto size = static_cast<std::int32_t>(reader.tokens.size());
    if (size - best.length <= kWorthCopying) return best;
    for (SlotId slot = 0; slot < shape_.slot_count; ++slot) {
        const std::int32_t length = shared(slot, reader);
        if (length >= best.length + kWorthCopying) best = {slot, length};
    }
    return best;
}

std::int32_t DraftModel::unread(const Reader& reader) const {
    return static_cast<std::int32_t>(reader.tokens.size()) - source_of(reader).length;
}

std::vector<DraftModel::Answer> DraftModel::propose(std::span<const Reader> readers) {
    const double began = clock_();
    std::vector<Answer> answers(readers.size());
    std::vector<Open> open = read(readers);
    const std::size_t read_rows = batch_.size();
    double round = began;
    for (std::size_t asked = 0; !open.empty();) {
        // On a device, logits that are asked for are what waits for it.
        open = extend(readers, open, answers);
        const double now = clock_();
        if (asked > 0) {
            rounds_[asked].add(now - round);
        } else if (read_rows >= kTellingRows) {
            read_row_.add((now - round) / static_cast<double>(read_rows));
        }
        asked = open.size();
        round = now;
        if (open.empty() || !decode()) break;
    }
    spent_ += clock_() - began;
    return answers;
}

// Takes the next token of each; the batch has those that go on.
std::vector<DraftModel::Open> DraftModel::extend(std::span<const Reader> readers,
                                                 std::span<const Open> open,
                                                 std::vector<Answer>& answers) {
    std::vector<Open> going;
    batch_.clear();
    for (const auto& [index, row] : open) {
        const Reader& reader = readers[index];
        auto& tokens = answers[index].tokens;
        answers[index].has_read = true;
        const Token token = next_token(row);
        if (token < 0) continue;
        tokens.push_back(token);
        const auto length = static_cast<std::int32_t>(text(reader.slot).tokens.size());
        if (static_cast<std::int32_t>(tokens.size()) >= reader.most) continue;
        if (length >= shape_.cells_per_sequence) continue;
        going.push_back({index, batch_.size()});
        batch_.push_back({token, length, reader.slot, true});
    }
    return going;
}

// The slot has what it can have of the text without reading. false: it has nothing.
bool DraftModel::bring_to_common(const Reader& reader) {
    const auto [from, length] = source_of(reader);
    auto& [tokens, salt] = text(reader.slot);
    if (from == reader.slot) {
        if (length < static_cast<std::int32_t>(tokens.size()) && !backend_->truncate(from, length))
            return false;
        tokens.resize(static_cast<std::size_t>(length));
    } else {
        if (!tokens.empty() && !backend_->truncate(reader.slot, 0)) return false;
        tokens.clear();
        if (backend_->copy_prefix(from, reader.slot, length))
            tokens.assign(reader.tokens.begin(), reader.tokens.begin() + length);
    }
    salt = reader.salt;
    return true;
}

// How many rows each reads now: those with the fewest first, who are as good as done.
std::vector<std::int32_t> DraftModel::share_rows(std::span<const Reader> readers) const {
    std::vector<std::int32_t> rows(readers.size(), 0);
    std::vector<std::size_t> order(readers.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = 0; i < readers.size(); ++i) {
        if (static_cast<std::int32_t>(readers[i].tokens.size()) > shape_.cells_per_sequence)
            continue;
        rows[i] = unread(readers[i]);
        const auto next = readers[i].tokens.last(static_cast<std::size_t>(rows[i]));
        const auto is_known = [this](Token token) {
            return static_cast<std::size_t>(token) < vocabulary_size_;
        };
        if (!std::ranges::all_of(next, is_known)) rows[i] = 0;
    }
    std::ranges::stable_sort(order, {}, [&rows](std::size_t i) { return rows[i]; });
    // Two for each: what came of its own model, and the row behind.
    const auto few =
        static_cast<std::int32_t>(std::min<std::size_t>(2 * readers.size(), kMostRead));
    double left = read_row_.value <= 0.0 ? kMostRead : kReadFor / read_row_.value;
    left = std::clamp<double>(left, std::max(few, kLeastRead), kMostRead);
    for (const std::size_t i : order) {
        rows[i] = std::min(rows[i], static_cast<std::int32_t>(left));
        left -= rows[i];
    }
    return rows;
}

// Returns those whose texts are read to the end.
std::vector<DraftModel::Open> DraftModel::read(std::span<const Reader> readers) {
    std::vector<Open> open;
    const auto rows = share_rows(readers);
    batch_.clear();
    for (std::size_t i = 0; i < readers.size(); ++i) {
        const Reader& reader = readers[i];
        if (rows[i] == 0) continue;
        if (!bring_to_common(reader)) {
            forget(reader.slot);
            continue;
        }
        const auto size = static_cast<std::int32_t>(reader.tokens.size());
        const auto length = static_cast<std::int32_t>(text(reader.slot).tokens.size());
        const std::int32_t end = std::min(size, length + rows[i]);
        for (std::int32_t at = length; at < end; ++at) {
            batch_.push_back(
                {reader.tokens[static_cast<std::size_t>(at)], at, reader.slot, at + 1 == size});
        }
        if (end == size) open.push_back({i, batch_.size() - 1});
    }
    if (batch_.empty() || !decode()) return {};
    return open;
}

// -1: none that it is sure enough of, or the end of a text.
Token DraftModel::next_token(std::size_t row) {
    auto logits = backend_->logits(row);
    logits = logits.first(std::min(logits.size(), vocabulary_size_));
    const LogitView view(logits);
    std::vector<TokenLogit> top;
    view.find_top(1, top);
    if (top.empty() || !std::isfinite(top[0].second)) return -1;
    const auto [token, highest] = top[0];
    if (1.0 / view.sum_of_exp(highest) < kLeastSure || backend_->is_end(token)) return -1;
    return token;
}

// Of what is in the batch. false: its slots are empty now, and where a pool is full, all are.
bool DraftModel::decode() {
    const DecodeStatus status = backend_->decode(batch_);
    if (status == DecodeStatus::kOk) {
        for (const BatchRow& row : batch_)
            text(row.slot).tokens.push_back(row.token);
        rows_ += static_cast<std::int64_t>(batch_.size());
        return true;
    }
    for (const BatchRow& row : batch_)
        forget(row.slot);
    for (SlotId slot = 0; status == DecodeStatus::kNoCells && slot < shape_.slot_count; ++slot)
        forget(slot);
    return false;
}

void DraftModel::forget(SlotId slot) {
    text(slot) = {};
    backend_->truncate(slot, 0);
}

}  // namespace fermata
