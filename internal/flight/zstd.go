package flight

import (
	kzstd "github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// blockBytes is the size of zstd's blocks. Each block has one table of symbols. BYTE_STREAM_SPLIT lays the first bytes
// of all numbers of a page one after another, then the second ones, and so on: in blocks of zstd's usual 128 KiB all of
// a small page's would share a table, and a byte of noise would spoil the code of a byte that hardly changes. In short
// blocks each has its own: that is 15 % of the record.
const blockBytes = 16 << 10

// codec is zstd with short blocks. Any reader of zstd reads them.
type codec struct {
	zstd.Codec // String, CompressionCodec, Decode
	encoder    *kzstd.Encoder
}

// Effort is how hard an encoder tries to make a file small.
type Effort = kzstd.EncoderLevel

// Quick is for a file that lives for minutes, Small for one that stays: a tenth less, for twice the CPU time. Where
// noise is most of a file, quicker levels find matches in it that are longer than the symbols.
const (
	Quick = kzstd.SpeedFastest
	Small = kzstd.SpeedBetterCompression
)

// newCodec uses one thread: what writes the record must not take the CPUs of the node.
func newCodec(e Effort) *codec {
	encoder, err := kzstd.NewWriter(nil, kzstd.WithEncoderConcurrency(1), kzstd.WithEncoderLevel(e),
		kzstd.WithWindowSize(blockBytes), kzstd.WithZeroFrames(true), kzstd.WithEncoderCRC(false))
	if err != nil {
		panic("zstd refuses its options: " + err.Error()) // which are constants
	}
	return &codec{encoder: encoder}
}

// Encode implements compress.Codec.
func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}
