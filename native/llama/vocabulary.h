// The tokens of a model: their bytes, their kinds, their spellings. Immutable once built, so safe
// from every thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

struct llama_vocab;

namespace fermata {

enum class SpecialKind : std::uint8_t { kControl, kUserDefined };

// A token that is recognized by its spelling in prompt text.
struct SpecialToken {
    Token id = 0;
    std::string text;
    // llama.cpp's UNKNOWN kind counts as control: it treats the two alike.
    SpecialKind kind = SpecialKind::kControl;
    bool strip_left = false;   // swallows the blanks before it
    bool strip_right = false;  // swallows the blanks after it
};

class Vocabulary {
   public:
    // `vocab` outlives this object and is not of the kind without tokens.
    explicit Vocabulary(const llama_vocab* vocab);

    const llama_vocab* handle() const { return vocab_; }
    std::int32_t size() const { return static_cast<std::int32_t>(pieces_.size()); }
    bool contains(Token token) const { return token >= 0 && token < size(); }

    // Bytes that the token adds to the output; control and end-of-generation tokens add none.
    // Valid as long as this object. `token` must be contained, here and below.
    std::string_view piece(Token token) const { return pieces_[static_cast<std::size_t>(token)]; }
    // As piece(), but control tokens are spelled out.
    std::string spelled_piece(Token token) const;
    bool is_end(Token token) const;
    // Of kind CONTROL or USER_DEFINED: must never come out of untrusted text.
    bool is_reserved(Token token) const;

    // End of turn if there is one, else end of text, else any end-of-generation token; -1 if none.
    Token end_token() const { return end_token_; }
    const std::vector<Token>& end_tokens() const { return end_tokens_; }
    Token bos_token() const;  // -1 if none
    Token eos_token() const;  // -1 if none
    bool adds_bos() const;
    // SentencePiece: llama.cpp may put a space before the first text of a tokenize call.
    bool is_sentencepiece() const;
    // Text is split into words before it becomes tokens: no token has parts of two.
    bool splits_words() const { return splits_words_; }

    // In the order in which llama.cpp looks for them: longest spelling first.
    const std::vector<SpecialToken>& special_tokens() const { return special_tokens_; }
    // An unreserved token that stands for this one byte; -1 if none.
    Token byte_token(unsigned char byte) const { return byte_tokens_[byte]; }

   private:
    const llama_vocab* vocab_;
    std::vector<std::string> pieces_;
    std::vector<SpecialToken> special_tokens_;
    std::array<Token, 256> byte_tokens_;
    std::vector<Token> end_tokens_;
    Token end_token_ = -1;
    bool splits_words_ = false;
};

}  // namespace fermata
