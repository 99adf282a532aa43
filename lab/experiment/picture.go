package experiment

import (
	"bytes"
	"fmt"
	"os"

	"plimsoll/internal/figure"
)

// SavePicture writes a picture in the format that the file's name tells.
func SavePicture(name string, c *figure.Canvas) error {
	var picture bytes.Buffer
	if err := c.Write(&picture, name); err != nil {
		return fmt.Errorf("draw %s: %w", name, err)
	}
	if err := os.WriteFile(name, picture.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}
