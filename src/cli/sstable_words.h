// What is in the files of an engine, in words for people: entries with their dots, contexts and
// deletes; what a file was frozen with and what of it is garbage.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"

namespace helenus::cli {

// Whose entries a file has, as its metadata says.
enum class FileKind : unsigned char { table, mutations, other };
FileKind file_kind_of(const base::Bytes& metadata);

// A line each. Of what cannot be read a line says why.
std::vector<std::string> metadata_in_words(const base::Bytes& metadata);
std::vector<std::string> entry_in_words(FileKind kind, const base::Bytes& value);

}  // namespace helenus::cli
