#include "core/draft_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/logit_view.h"

namespace fermata {

namespace {

// A text's beginning is copied from another slot if that saves so many rows.
constexpr std::int32_t kWorthCopying = 32;
constexpr double kWeightOfNew = 0.1;

}  // namespace

DraftModel::DraftModel(std::unique_ptr<Backend> backend, std::int32_t vocabulary_size, Clock clock)
    : backend_(std::move(backend)),
      shape_(backend_->shape()),
      vocabulary_size_(static_cast<std::size_t>(vocabulary_size)),
      clock_(std::move(clock)),
      contents_(static_cast<std::size_t>(shape_.slot_count)) {}

void DraftModel::Average::add(double seen) {
    count += 1;
    value += std::max(kWeightOfNew, 1.0 / count) * (seen - value);
}

std::vector<Token>& DraftModel::content(SlotId slot) {
    return contents_[static_cast<std::size_t>(slot)];
}

std::int32_t DraftModel::shared(SlotId slot, std::span<const Token> tokens) const {
    const auto& there = contents_[static_cast<std::size_t>(slot)];
    return static_cast<std::int32_t>(std::ranges::mismatch(there, tokens).in1 - there.begin());
}

std::int32_t DraftModel::unread(SlotId slot, std::span<const Token> tokens) const {
    return static_cast<std::int32_t>(tokens.size()) - shared(slot, tokens);
}

double DraftModel::milliseconds_to_read(std::int32_t rows) const {
    return read_row_.value * rows;
}

double DraftModel::milliseconds_for(std::size_t sequences) const {
    const auto found = rounds_.find(sequences);
    return found == rounds_.end() ? 0.0 : found->second.value;
}

double DraftModel::take_spent() {
    return std::exchange(spent_, 0.0);
}

std::vector<std::vector<Token>> DraftModel::propose(std::span<const Reader> readers) {
    const double began = clock_();
    std::vector<std::vector<Token>> drafts(readers.size());
    std::vector<Open> open = read(readers);
    while (!open.empty()) {
        std::vector<Open> going;
        batch_.clear();
        for (const auto& [index, row] : open) {
            const Reader& reader = readers[index];
            const Token token = next_token(row);
            if (token < 0) continue;
            drafts[index].push_back(token);
            const auto count = static_cast<std::int32_t>(drafts[index].size());
            const auto length = static_cast<std::int32_t>(content(reader.slot).size());
            if (count >= reader.most || length >= shape_.cells_per_sequence) continue;
            going.push_back({index, batch_.size()});
            batch_.push_back({token, length, reader.slot, true});
        }
        open = std::move(going);
        if (open.empty()) break;
        const double round = clock_();
        if (!decode()) break;
        rounds_[open.size()].add(clock_() - round);
    }
    spent_ += clock_() - began;
    return drafts;
}

// The slot has what it can have of the text without reading, and not the last token, whose logits
// are wanted. false: it has nothing.
bool DraftModel::bring_to_common(const Reader& reader) {
    const auto known = reader.tokens.first(reader.tokens.size() - 1);
    std::int32_t best = shared(reader.slot, known);
    SlotId from = reader.slot;
    for (SlotId slot = 0; slot < shape_.slot_count; ++slot) {
        const std::int32_t length = shared(slot, known);
        if (length < best + kWorthCopying) continue;
        best = length;
        from = slot;
    }
    auto& there = content(reader.slot);
    if (from == reader.slot) {
        if (best < static_cast<std::int32_t>(there.size()) && !backend_->truncate(from, best))
            return false;
    } else {
        if (!there.empty() && !backend_->truncate(reader.slot, 0)) return false;
        there.clear();
        if (!backend_->copy_prefix(from, reader.slot, best)) return true;
    }
    there.assign(known.begin(), known.begin() + best);
    return true;
}

std::int32_t DraftModel::rows_to_read_at_once() const {
    if (read_row_.value <= 0.0) return kMostRead;
    const double rows = kReadFor / read_row_.value;
    return static_cast<std::int32_t>(std::clamp<double>(rows, kLeastRead, kMostRead));
}

// So many tokens of all, in order. Returns those that are read to the end.
std::vector<DraftModel::Open> DraftModel::read(std::span<const Reader> readers) {
    std::vector<Open> open;
    const std::int32_t most_rows = rows_to_read_at_once();
    batch_.clear();
    for (std::size_t i = 0; i < readers.size(); ++i) {
        const auto& [slot, tokens, most] = readers[i];
        const auto room = most_rows - static_cast<std::int32_t>(batch_.size());
        const auto size = static_cast<std::int32_t>(tokens.size());
        if (room <= 0 || most <= 0 || size > shape_.cells_per_sequence) continue;
        if (!bring_to_common(readers[i])) {
            forget(slot);
            continue;
        }
        const auto length = static_cast<std::int32_t>(content(slot).size());
        const std::int32_t end = std::min(size, length + room);
        for (std::int32_t at = length; at < end; ++at)
            batch_.push_back({tokens[static_cast<std::size_t>(at)], at, slot, at + 1 == size});
        if (end == size) open.push_back({i, batch_.size() - 1});
    }
    if (batch_.empty()) return {};
    const double began = clock_();
    const auto count = static_cast<double>(batch_.size());
    if (!decode()) return {};
    // A few rows take as long as one.
    if (batch_.size() >= static_cast<std::size_t>(kWorthCopying))
        read_row_.add((clock_() - began) / count);
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

// Of what is in the batch. false: its slots are empty now.
bool DraftModel::decode() {
    const DecodeStatus status = backend_->decode(batch_);
    if (status == DecodeStatus::kOk) {
        for (const BatchRow& row : batch_)
            content(row.slot).push_back(row.token);
        rows_ += static_cast<std::int64_t>(batch_.size());
        return true;
    }
    // A pool without room holds what others have left.
    for (SlotId slot = 0; slot < shape_.slot_count; ++slot)
        forget(slot);
    return false;
}

void DraftModel::forget(SlotId slot) {
    content(slot).clear();
    backend_->truncate(slot, 0);
}

}  // namespace fermata
