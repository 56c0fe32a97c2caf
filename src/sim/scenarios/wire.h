// Frames over a stream, for the systems of the shipped scenarios: a length, a checksum, bytes.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/transport.h"

namespace helenus::sim {

inline constexpr std::size_t kFrameSizeMax = 256 * 1024;

// Errors: those of the stream.
runtime::Task<base::Result<void>> write_frame(runtime::Stream& stream, base::Bytes payload,
                                              runtime::Until until);

// Errors: those of the stream; closed at the end of the stream; corrupt for bytes that are no
// frame.
runtime::Task<base::Result<base::Bytes>> read_frame(runtime::Stream& stream, runtime::Until until);

}  // namespace helenus::sim
