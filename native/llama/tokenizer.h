// Text to tokens, where only trusted text may produce special tokens. Safe from every thread.
//
// A prompt is a template's text with untrusted strings (messages, tool results) inside. The caller
// marks untrusted text with a guard character; a special token is recognized where it is spelled,
// unless a guard stands inside its spelling or right after its first character. Text without guards
// becomes exactly the tokens of llama_tokenize with parse_special, but for words that are cut (see
// long_words.h).
//
// No token of kind CONTROL or USER_DEFINED comes out of a spelling that is guarded: the text is cut
// inside it and its parts are tokenized apart. Where a reserved token remains (it is one character
// long, or the vocabulary's merges lead to it), its bytes are written with the tokens of single
// bytes; a byte for which the vocabulary has no other token is left out.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "llama/spelling_trie.h"
#include "llama/vocabulary.h"

namespace fermata {

class Tokenizer {
   public:
    // `vocabulary` outlives this object.
    explicit Tokenizer(const Vocabulary& vocabulary);

    // `guard` is one UTF-8 character, removed wherever it stands, or empty. `add_bos` puts the
    // beginning token first if the vocabulary has one and the text does not begin with it.
    // Error: invalid_argument, for text beyond 2 GB or that llama.cpp cannot tokenize.
    Result<std::vector<Token>> tokenize(std::string_view text, std::string_view guard,
                                        bool add_bos) const;

    // The tokens of text that follows other text: no beginning token, no blank before it, no
    // control token out of a spelling, but tokens of kind USER_DEFINED. Their pieces are the text
    // to the byte; where the vocabulary would change it, tokens of single bytes are. Empty if even
    // those are missing.
    std::vector<Token> tokenize_continuation(std::string_view text) const;

    // Of text in which nothing is special; tokens of kind USER_DEFINED are found all the same.
    // Errors as above.
    Result<std::vector<Token>> tokenize_text(std::string_view text) const;

    // The bytes of the tokens, control tokens spelled when `special`. Ids out of range add nothing.
    std::string detokenize(std::span<const Token> tokens, bool special) const;

   private:
    struct Plain;    // a text without its guards
    struct Segment;  // a special token, or text between such

    static Plain remove_guards(std::string_view text, std::string_view guard);
    std::vector<Segment> segment(const Plain& plain, const FoundSpellings& found) const;
    void append_text(const Plain& plain, const Segment& segment,
                     const std::vector<Occurrence>& spelled, std::vector<Token>& tokens) const;
    void append_part(std::string_view part, bool continues, std::vector<Token>& tokens) const;
    // Of text behind other text.
    std::vector<Token> tokenize_behind(std::string_view text) const;
    void append_unreserved(const std::vector<Token>& part, std::vector<Token>& tokens) const;
    // llama_tokenize without special tokens; of the kind USER_DEFINED it still finds all.
    std::vector<Token> tokenize_plain(std::string_view text) const;
    std::vector<Token> tokenize_piece(std::string_view text) const;
    // A string that nothing merges with, so that what follows it is tokenized as a continuation;
    // empty if the vocabulary needs none.
    std::string find_separator() const;

    const Vocabulary& vocabulary_;
    SpellingTrie spellings_;  // values are indices into vocabulary_.special_tokens()
    std::string separator_;
    std::size_t separator_tokens_ = 0;
};

}  // namespace fermata
