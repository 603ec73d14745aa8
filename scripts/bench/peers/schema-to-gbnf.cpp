// schema-to-gbnf FILE: JSON schemas to GBNF as llama.cpp does it, from a schema a line to a JSON
// string a line; null where it cannot.
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "json-schema-to-grammar.h"

int main(int count, char** arguments) {
    std::ifstream file(count > 1 ? arguments[1] : "");
    for (std::string line; std::getline(file, line);) {
        nlohmann::json out;
        try {
            out = json_schema_to_grammar(nlohmann::ordered_json::parse(line));
        } catch (const std::exception&) {
            out = nullptr;
        }
        std::cout << out.dump() << "\n";
    }
}
