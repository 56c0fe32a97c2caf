// The bytes of clocks, contexts, dot stores and deltas: docs/formats/causality.md.
//
// Every top-level value begins with a version byte. Decoding validates everything: order, shortest
// forms, that no version is in its own context. So equal values have equal bytes, and what was
// decoded keeps the invariants of its type whoever wrote the bytes. Bad bytes are Errc::corrupt, a
// later format Errc::unsupported; they never assert.
//
// Law: whatever encodes decodes, to an equal value, however large merges have made it. A count is
// believed as far as there are bytes for it, and memory is taken as elements are read.
//
// Decoded byte strings are slices of `bytes` and keep its block alive.
#pragma once

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/context.h"
#include "causality/delta.h"
#include "causality/dot_store.h"

namespace helenus::causality {

inline constexpr std::uint8_t kFormatVersion = 1;

void encode(base::Encoder& out, const Clock& clock);
void encode(base::Encoder& out, const Context& context);
void encode(base::Encoder& out, const CellStore& cell);
void encode(base::Encoder& out, const RowStore& row);
void encode(base::Encoder& out, const RangeDelete& range_delete);
void encode(base::Encoder& out, const Delta& delta);

base::Result<Clock> decode_clock(const base::Bytes& bytes);
base::Result<Context> decode_context(const base::Bytes& bytes);
base::Result<CellStore> decode_cell(const base::Bytes& bytes);
base::Result<RowStore> decode_row(const base::Bytes& bytes);
// The same into memory that is there. After an error what is in `row` means nothing.
base::Result<void> decode_row_into(RowStore& row, const base::Bytes& bytes);
base::Result<RangeDelete> decode_range_delete(const base::Bytes& bytes);
base::Result<Delta> decode_delta(const base::Bytes& bytes);

template <class T>
base::Bytes encoded(const T& value) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  encode(out, value);
  return std::move(buffer).freeze();
}

}  // namespace helenus::causality
