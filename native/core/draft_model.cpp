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

DraftModel::DraftModel(std::unique_ptr<Decoder> backend, std::int32_t vocabulary_size, Clock clock)
    : backend_(std::move(backend)),
      shape_(backend_->shape()),
      vocabulary_size_(static_cast<std::size_t>(vocabulary_size)),
      clock_(std::move(clock)),
      texts_(static_cast<std::size_t>(shape_.slot_count)) {}

void DraftModel::Average::add(double seen) {
    count += 1;
    value += std::max(kWeightOfNew, 1.0 / count) * (seen - value);
}

// Of each number the second decode is measured: the first one makes its graph.
void DraftModel::measure() {
    const double began = clock_();
    const auto decode_rows = [this](std::int32_t slots, std::int32_t rows) {
        batch_.clear();
        for (SlotId slot = 0; slot < slots; ++slot) {
            const auto length = static_cast<std::int32_t>(text(slot).tokens.size());
            for (std::int32_t i = 0; i < rows; ++i)
                batch_.push_back({0, length + i, slot, i + 1 == rows});
        }
        const double started = clock_();
        if (decode()) backend_->logits(batch_.size() - 1);
        for (SlotId slot = 0; slot < slots; ++slot)
            forget(slot);
        return clock_() - started;
    };
    for (std::int32_t slots = 1; slots <= shape_.slot_count; slots *= 2) {
        decode_rows(slots, 1);
        rounds_[static_cast<std::size_t>(slots)].add(decode_rows(slots, 1));
    }
    const auto rows = static_cast<std::int32_t>(kTellingRows);
    if (rows <= shape_.cells_per_sequence) {
        decode_rows(1, rows);
        read_row_.add(decode_rows(1, rows) / rows);
    }
    rows_ = 0;
    spent_ += clock_() - began;
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
    const Text& text = texts_[static_cast<std::size_t>(slot)];
    if (text.salt != reader.salt) return 0;
    const auto known = reader.tokens.first(reader.tokens.size() - 1);
    return static_cast<std::int32_t>(std::ranges::mismatch(text.tokens, known).in1 -
                                     text.tokens.begin());
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
    if (!backend_->keeps_proposed()) drop_proposed(readers);
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

void DraftModel::drop_proposed(std::span<const Reader> readers) {
    for (const Reader& reader : readers) {
        auto& tokens = text(reader.slot).tokens;
        if (tokens.size() <= reader.tokens.size()) continue;
        tokens.resize(reader.tokens.size());
        if (!backend_->truncate(reader.slot, static_cast<std::int32_t>(tokens.size())))
            forget(reader.slot);
    }
}

// The row that tells the next token, at least.
bool DraftModel::can_read(const Reader& reader) const {
    const auto [first, end] = backend_->readable(reader.slot);
    const auto size = static_cast<std::int32_t>(reader.tokens.size());
    return size > first && size <= end && size <= shape_.cells_per_sequence;
}

// `length`: so many tokens of the text are in its cache, or lacking.
bool DraftModel::is_worth_reading(const Reader& reader, std::int32_t length) const {
    const auto size = static_cast<std::int32_t>(reader.tokens.size());
    if (read_row_.value * (size - length) > reader.worth) return false;
    const auto is_known = [this](Token token) {
        return static_cast<std::size_t>(token) < vocabulary_size_;
    };
    return std::ranges::all_of(reader.tokens.subspan(static_cast<std::size_t>(length)), is_known);
}

// The slot has what it can have of the text without reading. Returns how many rows are left to
// read; 0: it is not to be read.
std::int32_t DraftModel::bring_to_common(const Reader& reader) {
    if (!can_read(reader)) return 0;
    const auto [from, length] = source_of(reader);
    const std::int32_t first = backend_->readable(reader.slot).first;
    if (!is_worth_reading(reader, std::max(length, first))) return 0;
    auto& tokens = text(reader.slot).tokens;
    const std::int32_t stays = from == reader.slot ? length : 0;
    if (stays < static_cast<std::int32_t>(tokens.size())) {
        if (!backend_->truncate(reader.slot, stays)) {
            forget(reader.slot);
            return 0;
        }
        tokens.resize(static_cast<std::size_t>(stays));
    }
    if (from != reader.slot && backend_->copy_prefix(from, reader.slot, length))
        tokens.assign(reader.tokens.begin(), reader.tokens.begin() + length);
    if (static_cast<std::int32_t>(tokens.size()) < first)
        tokens.assign(reader.tokens.begin(), reader.tokens.begin() + first);
    text(reader.slot).salt = reader.salt;
    return static_cast<std::int32_t>(reader.tokens.size() - tokens.size());
}

// How many of the rows that are left each reads now: those with the fewest first, who are as good
// as done.
void DraftModel::share_rows(std::span<std::int32_t> rows) const {
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&rows](std::size_t i) { return rows[i]; });
    // Two for each: what came of its own model, and the row behind.
    const auto few = static_cast<std::int32_t>(std::min<std::size_t>(2 * rows.size(), kMostRead));
    double left = read_row_.value <= 0.0 ? kMostRead : kReadFor / read_row_.value;
    left = std::clamp<double>(left, std::max(few, kLeastRead), kMostRead);
    for (const std::size_t i : order) {
        rows[i] = std::min(rows[i], static_cast<std::int32_t>(left));
        left -= rows[i];
    }
}

// Returns those whose texts are read to the end.
std::vector<DraftModel::Open> DraftModel::read(std::span<const Reader> readers) {
    std::vector<Open> open;
    std::vector<std::int32_t> rows;
    for (const Reader& reader : readers)
        rows.push_back(bring_to_common(reader));
    share_rows(rows);
    batch_.clear();
    for (std::size_t i = 0; i < readers.size(); ++i) {
        const Reader& reader = readers[i];
        const auto size = static_cast<std::int32_t>(reader.tokens.size());
        const auto length = static_cast<std::int32_t>(text(reader.slot).tokens.size());
        const std::int32_t end = length + rows[i];
        for (std::int32_t at = length; at < end; ++at) {
            batch_.push_back(
                {reader.tokens[static_cast<std::size_t>(at)], at, reader.slot, at + 1 == size});
        }
        if (rows[i] > 0 && end == size) open.push_back({i, batch_.size() - 1});
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

// Of what is in the batch; a full pool loses other texts first. false: its slots are empty now.
bool DraftModel::decode() {
    ++decodes_;
    for (const BatchRow& row : batch_)
        text(row.slot).last_decode = decodes_;
    DecodeStatus status = backend_->decode(batch_);
    while (status == DecodeStatus::kNoCells && forget_oldest())
        status = backend_->decode(batch_);
    if (status == DecodeStatus::kOk) {
        for (const BatchRow& row : batch_)
            text(row.slot).tokens.push_back(row.token);
        rows_ += static_cast<std::int64_t>(batch_.size());
        return true;
    }
    for (const BatchRow& row : batch_)
        forget(row.slot);
    return false;
}

// false: there is no text but those of the batch.
bool DraftModel::forget_oldest() {
    SlotId oldest = kNoSlot;
    for (SlotId slot = 0; slot < shape_.slot_count; ++slot) {
        if (text(slot).tokens.empty() || text(slot).last_decode == decodes_) continue;
        if (oldest == kNoSlot || text(slot).last_decode < text(oldest).last_decode) oldest = slot;
    }
    if (oldest == kNoSlot) return false;
    forget(oldest);
    return true;
}

void DraftModel::forget(SlotId slot) {
    text(slot) = {};
    backend_->truncate(slot, 0);
}

}  // namespace fermata
